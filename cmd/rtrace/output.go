package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"

	"rtrace-bpf/internal/atomicfile"
	"rtrace-bpf/internal/cli"
)

// output is where a command writes its result: standard output, or a file that
// appears when it is complete.
type output struct {
	io.Writer
	file *atomicfile.File // nil for standard output
}

// create opens the output that -o names; empty and "-" are standard output.
// input is the file that is read, if it is one; it is never written. Binary
// data goes to a terminal only for "-".
func create(s cli.Streams, name, input string, binary bool) (*output, error) {
	if name == "" || name == "-" {
		if binary && name == "" && s.OutTerminal {
			return nil, cli.WithHint(errors.New("the output is binary and standard output is a terminal"),
				"name a file with -o, or say -o -")
		}
		return &output{Writer: s.Out}, nil
	}
	if sameFile(name, input) {
		return nil, cli.WithHint(cli.Usagef("%s is both input and output", name), "write to another file")
	}
	f, err := atomicfile.Create(name)
	if err != nil {
		return nil, cli.FileError("creating", name, err)
	}
	return &output{Writer: f, file: f}, nil
}

func sameFile(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	ia, err := os.Stat(a)
	if err != nil {
		return false
	}
	ib, err := os.Stat(b)
	return err == nil && ia.Mode().IsRegular() && os.SameFile(ia, ib)
}

// regular reports whether the output is a regular file.
func (o *output) regular() bool { return o.file != nil && o.file.Regular() }

// finish keeps the output if err leaves one worth keeping, else discards it.
// It returns err, or what went wrong last.
func (o *output) finish(err error) error {
	if o.file == nil {
		return err
	}
	if !isIncomplete(err) {
		return errors.Join(err, o.file.Discard())
	}
	if e := o.file.Commit(); e != nil {
		return e
	}
	return err
}

// writeJSON prints v as one indented JSON value.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
