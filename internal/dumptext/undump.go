package dumptext

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/trace"
)

// Undump converts the lines of a text back to bytes and writes these. parse
// returns the bytes of a line, which has no line break; they are valid until
// its next call. Lines of more than maxLine bytes are an error. An error in the
// text is a *trace.SyntaxError of the format with the offset of the line; the
// bytes of the lines before it are written.
func Undump(w io.Writer, r io.Reader, format string, maxLine int, parse func(line string) ([]byte, error)) error {
	out := bufio.NewWriter(w)
	err := undump(out, r, format, maxLine, parse)
	if e := out.Flush(); e != nil {
		return e
	}
	return err
}

func undump(out *bufio.Writer, r io.Reader, format string, maxLine int, parse func(line string) ([]byte, error)) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	var offset int64
	for lines.Scan() {
		data, err := parse(lines.Text())
		if lines.Err() != nil {
			break // the line is incomplete
		}
		if err != nil {
			return &trace.SyntaxError{Format: format, Offset: offset, Err: err}
		}
		if _, err := out.Write(data); err != nil {
			return err
		}
		offset += int64(len(lines.Bytes())) + 1
	}
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		return &trace.SyntaxError{Format: format, Offset: offset, Err: fmt.Errorf("line: %w", trace.ErrLimit)}
	}
	return lines.Err()
}
