package renaming

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"

	"rtrace-bpf/decoder/sprtrace"
)

// rewrite copies a trace and changes the names of attachments. Formats without
// attachments are never passed to it.
func (p *Plan) rewrite(w io.Writer, r io.Reader, format string) error {
	switch format {
	case "sprtrace":
		return p.binary(w, r)
	case "text":
		return lines(w, r, p.textLine)
	case "jsonl":
		return lines(w, r, p.jsonLine)
	}
	return fmt.Errorf("names of files in %s: %w", format, errors.ErrUnsupported)
}

// binary changes the dump of the trace, which contains every byte of it.
func (p *Plan) binary(w io.Writer, r io.Reader) error {
	dumped, dump := io.Pipe()
	changed, change := io.Pipe()
	var both sync.WaitGroup
	both.Go(func() { dump.CloseWithError(sprtrace.Dump(dump, r, sprtrace.Options{})) })
	both.Go(func() {
		err := lines(change, dumped, p.dumpLine)
		dumped.CloseWithError(err)
		change.CloseWithError(err)
	})
	err := sprtrace.Undump(w, changed)
	changed.CloseWithError(err)
	both.Wait()
	return err
}

var (
	dumpFile = regexp.MustCompile(`^(\S+\s+\S+ FILE .* path=[a-z]*)("(?:[^"\\]|\\.)*")(.*)$`)
	textFile = regexp.MustCompile(`^(&\s+\S+\s+:\s+)(\S+)(\s*)$`)
	jsonFile = regexp.MustCompile(`"path"\s*:\s*"([^"\\]*)"`)
)

func (p *Plan) dumpLine(line []byte) []byte {
	if !bytes.Contains(line, []byte(" FILE ")) {
		return line
	}
	m := dumpFile.FindSubmatch(line)
	if m == nil {
		return line
	}
	path, err := strconv.Unquote(string(m[2]))
	if name, ok := p.paths[path]; ok && err == nil {
		return append(strconv.AppendQuoteToASCII(bytes.Clone(m[1]), name), m[3]...)
	}
	return line
}

func (p *Plan) textLine(line []byte) []byte {
	if len(line) == 0 || line[0] != '&' {
		return line
	}
	if m := textFile.FindSubmatch(line); m != nil {
		if name, ok := p.paths[string(m[2])]; ok {
			return bytes.Join([][]byte{m[1], []byte(name), m[3]}, nil)
		}
	}
	return line
}

func (p *Plan) jsonLine(line []byte) []byte {
	if !bytes.Contains(line, []byte(`attachment`)) {
		return line
	}
	var record struct{ Kind, Path string }
	if json.Unmarshal(line, &record) != nil || record.Kind != "attachment" {
		return line
	}
	m := jsonFile.FindSubmatchIndex(line)
	name, ok := p.paths[record.Path]
	if m == nil || !ok || string(line[m[2]:m[3]]) != record.Path {
		return line
	}
	return bytes.Join([][]byte{line[:m[2]], []byte(name), line[m[3]:]}, nil)
}

// lines copies a text line by line, with or without a final line break.
func lines(w io.Writer, r io.Reader, change func([]byte) []byte) error {
	in, out := bufio.NewReaderSize(r, 1<<16), bufio.NewWriterSize(w, 1<<16)
	var long []byte // beginning of a line that exceeds the buffer of in
	for {
		part, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			// Only short lines contain names of files.
			long = append(long, part...)
			if len(long) > 1<<20 {
				if _, err := out.Write(long); err != nil {
					return err
				}
				long = long[:0]
			}
			continue
		}
		if len(long) > 0 {
			part = append(long, part...)
			long = long[:0]
		}
		text, end := bytes.CutSuffix(part, []byte("\n"))
		text = change(text)
		if _, err := out.Write(text); err != nil {
			return err
		}
		if end {
			if err := out.WriteByte('\n'); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return out.Flush()
		case err != nil:
			return err
		}
	}
}
