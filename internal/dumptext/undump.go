package dumptext

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/trace"
)

// Undump writes what the lines of a text stand for. parse returns that of a line,
// without its end, until it is called again. Lines of more than maxLine bytes are
// refused. An error of the text is a *trace.SyntaxError of the format, whose offset is
// that of the line; what the lines before it stand for is written.
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
			break // the line is not whole
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
