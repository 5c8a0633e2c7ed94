package sptext

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	wire "rtrace-bpf/internal/wire/sptext"
	"rtrace-bpf/trace"
)

// Editor decides what Rewrite changes. The arguments of its methods are valid during
// the call.
type Editor interface {
	// Observe is called with every record about mapped files, in the order of the text:
	// the header with its process, mappings, unmappings and execs.
	Observe(*trace.Record)
	// Filter returns the new filter value of the header; old is the present one.
	Filter(old string) string
	// Frame returns the new text of a frame; old is the present one, and may be empty.
	Frame(addr uint64, old string) string
}

// Rewriter copies a text and changes only the texts of frames and the filter value of
// the header. So it keeps what records cannot hold: which calls share a stack,
// temporary comments, the order of everything.
type Rewriter struct {
	in     *bufio.Reader
	out    *bufio.Writer
	ctx    context.Context
	parser *Reader
	editor Editor
	offset int64
	lines  uint
	edited []byte
	ends   bool // the text announces its end
	ended  bool
}

// rewriteLine is the length in bytes from which on a line is copied unchanged.
const rewriteLine = 64 << 10

// Rewrite copies a text. With an error, everything complete is written: a
// *trace.SyntaxError if the input is not a trace or ends within a line.
func Rewrite(ctx context.Context, w io.Writer, r io.Reader, e Editor) error {
	parser, err := New(r, Options{})
	if err != nil {
		return err
	}
	x := &Rewriter{
		in: bufio.NewReaderSize(r, rewriteLine), out: bufio.NewWriterSize(w, rewriteLine),
		ctx: ctx, parser: parser, editor: e,
	}
	err = x.run()
	if e := x.out.Flush(); e != nil {
		return e
	}
	return err
}

// Mappings calls observe with all mappings of a text.
func Mappings(ctx context.Context, r io.Reader, observe func(*trace.Record)) error {
	parser, err := New(r, Options{})
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(r, rewriteLine)
	var rec trace.Record
	for n, inside := 1, false; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := in.ReadSlice('\n')
		if len(line) > 0 && line[0] == ':' && !inside && err == nil && parser.registry(bytes.TrimRight(line, "\r\n"), &rec) && rec.Mapping.Start <= rec.Mapping.End {
			observe(&rec)
		}
		inside = errors.Is(err, bufio.ErrBufferFull)
		if err != nil && !inside {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return err
		}
	}
}

func (x *Rewriter) run() error {
	long := false // the rest of a long line follows
	for {
		if x.in.Buffered() == 0 {
			// A reader of a pipe gets everything so far before waiting for more.
			if err := x.out.Flush(); err != nil {
				return err
			}
		}
		if x.lines++; x.lines%1024 == 0 && x.ctx.Err() != nil {
			return x.ctx.Err()
		}
		line, err := x.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
		if e := x.line(line, long || err != nil); e != nil {
			return e
		}
		long = errors.Is(err, bufio.ErrBufferFull)
		if errors.Is(err, io.EOF) {
			return x.end(line)
		}
	}
}

// end returns the error for a text that ends within a line.
func (x *Rewriter) end(last []byte) error {
	if x.offset == 0 {
		return x.parser.syntaxError(0, trace.ErrTruncated)
	}
	if len(last) > 0 {
		return x.parser.syntaxError(x.offset-int64(len(last)), trace.ErrTruncated)
	}
	if x.ends && !x.ended {
		return x.parser.syntaxError(x.offset, trace.ErrUnfinished)
	}
	return nil
}

// line copies a line, or a piece of one, which stays unchanged.
func (x *Rewriter) line(line []byte, piece bool) error {
	first := x.offset == 0
	x.offset += int64(len(line))
	if !piece {
		text := bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'})
		var ok bool
		if first {
			d := x.parser
			if _, known := d.headerFields(text); !known && len(text) > 0 && bytes.IndexByte([]byte("#:@<&0123456789"), text[0]) < 0 {
				return d.syntaxError(0, trace.ErrMalformed)
			}
			ok = x.header(text)
		} else {
			x.ends = x.ends || x.lines == 2 && string(text) == wire.Ends
			x.ended = x.ended || string(text) == wire.End
			ok = x.edit(text)
		}
		if ok {
			line = append(x.edited, line[len(text):]...)
			x.edited = line[:0]
		}
	}
	_, err := x.out.Write(line)
	return err
}

// edit sets x.edited to the new text of a line without its line feed, and reports
// whether it differs.
func (x *Rewriter) edit(line []byte) bool {
	switch {
	case len(line) == 0:
	case line[0] == '\t':
		return x.frame(line)
	case line[0] == ':' || bytes.HasPrefix(line, []byte(wire.UnmappedPrefix)) || bytes.HasPrefix(line, []byte(wire.ExecPrefix)):
		var r trace.Record
		if x.parser.registry(line, &r) || x.parser.comment(line, &r) {
			switch r.Kind {
			case trace.KindMapping, trace.KindUnmapping:
				if r.Mapping.Start <= r.Mapping.End {
					x.editor.Observe(&r)
				}
			case trace.KindExec:
				x.editor.Observe(&r)
			}
		}
	}
	return false
}

// plain reports whether a text can be at the end of a line unquoted.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == 0x7f || c == '\\' {
			return false
		}
	}
	return true
}

// frame edits TAB 0xADDRESS[ TEXT].
func (x *Rewriter) frame(line []byte) bool {
	p := scanner{line[1:]}
	p.spaces()
	addr, ok := p.address()
	if !ok {
		return false
	}
	head := line[:len(line)-len(p.s)]
	p.spaces()
	old := ""
	if len(p.s) > 0 {
		old = x.parser.texts.text(p.s)
	}
	text := x.editor.Frame(addr, old)
	if text == old {
		return false
	}
	x.edited = append(x.edited[:0], head...)
	if text != "" {
		x.edited = append(x.edited, ' ')
		if plain(text) {
			x.edited = append(x.edited, text...)
		} else {
			x.edited = appendLine(x.edited, text)
		}
	}
	return true
}

// appendLine appends a text at the end of a line, quoted as the format's writer does.
func appendLine(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	for i := range len(s) {
		c := s[i]
		group := c == '\\' && len(s)-i >= 4 && s[i+1] == 'x' && hexValue[s[i+2]] < 16 && hexValue[s[i+3]] < 16
		if c < ' ' || c == 0x7f || group {
			b = append(b, '\\', 'x', digits[c>>4], digits[c&15])
			continue
		}
		b = append(b, c)
	}
	return b
}

// header edits the filter value of the header, or inserts one in its place.
func (x *Rewriter) header(line []byte) bool {
	d := x.parser
	if _, known := d.headerFields(line); !known {
		return x.edit(line)
	}
	d.first(line)
	for i := range d.ready {
		x.editor.Observe(&d.ready[i])
	}
	d.ready = d.ready[:0]

	return x.filter(strings.SplitAfter(string(line), ","))
}

// filter edits the filter value in the pairs of a header, which include their commas.
func (x *Rewriter) filter(pairs []string) bool {
	at, old, found := len(pairs), "", false
	for i, pair := range pairs {
		key, value, _ := strings.Cut(strings.TrimLeft(pair, " "), "=")
		if found = key == wire.KeyFilter; found {
			at, old = i, strings.TrimSuffix(value, ",")
			break
		}
		behind := key == wire.KeyDepth || key == wire.KeyOrigin || strings.TrimSpace(pair) == ""
		if behind && at == len(pairs) {
			at = i
		}
	}
	value := x.editor.Filter(old)
	if value == old {
		return false
	}
	pair := wire.KeyFilter + "=" + value + ","
	if at > 0 {
		pair = " " + pair
	}
	switch {
	case found:
		pairs[at] = pair
	case at == 0:
		pairs[0] = " " + pairs[0]
		pairs = slices.Insert(pairs, at, pair)
	default:
		if !strings.HasSuffix(pairs[at-1], ",") {
			pairs[at-1] += ","
		}
		pairs = slices.Insert(pairs, at, pair)
	}
	x.edited = append(x.edited[:0], strings.Join(pairs, "")...)
	return true
}
