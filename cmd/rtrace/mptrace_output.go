package main

import (
	"bufio"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"rtrace-bpf/internal/cli"
)

// mptraceOutputs are the outputs of mptrace.
type mptraceOutputs struct {
	text           *bufio.Writer // of the table and the statistics; one of the others
	stdout, stderr *bufio.Writer

	streams cli.Streams
	input   string
	files   []mptraceOutput
	paths   map[string]bool // regular files among them
}

type mptraceOutput struct {
	*bufio.Writer
	out *output
}

func newMptraceOutputs(s cli.Streams, input string) *mptraceOutputs {
	o := &mptraceOutputs{
		stdout: bufio.NewWriterSize(s.Out, 64<<10), stderr: bufio.NewWriterSize(s.Err, 64<<10),
		streams: s, input: input, paths: make(map[string]bool),
	}
	o.text = o.stdout
	return o
}

func isStdout(name string) bool { return name == "stdout" || name == "-" }

// numbered returns the name of the output of the nth stream.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	suffix := filepath.Ext(name)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(name, suffix), n, suffix)
}

// open returns the writer of a file, or one of the streams.
func (o *mptraceOutputs) open(name string) (*bufio.Writer, error) {
	switch {
	case isStdout(name):
		return o.stdout, nil
	case name == "stderr":
		return o.stderr, nil
	}
	out, err := create(o.streams, name, o.input, textContent)
	if err != nil {
		return nil, err
	}
	if path := filepath.Clean(name); out.regular() {
		if o.paths[path] {
			return nil, errors.Join(cli.Usagef("%s is two outputs", name), out.file.Discard())
		}
		o.paths[path] = true
	}
	w := bufio.NewWriterSize(out, 64<<10)
	o.files = append(o.files, mptraceOutput{w, out})
	return w, nil
}

// flush flushes all outputs.
func (o *mptraceOutputs) flush() error {
	if err := o.stdout.Flush(); err != nil {
		return err
	}
	if err := o.stderr.Flush(); err != nil {
		return err
	}
	for _, f := range o.files {
		if err := f.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// finish completes the outputs if err leaves something worth keeping.
func (o *mptraceOutputs) finish(err error) error {
	if e := o.flush(); e != nil && isIncomplete(err) {
		err = e
	}
	for _, f := range o.files {
		if e := f.out.finish(err); e != nil && !errors.Is(err, e) {
			err = e
		}
	}
	return err
}
