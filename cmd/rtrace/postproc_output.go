package main

import (
	"fmt"
	"io"
	"os"
	"strconv"

	"rtrace-bpf/internal/outfile"
)

// postprocOutput is where the text goes.
type postprocOutput struct {
	io.Writer
	file *outfile.File // nil for standard output
}

// create makes the output: standard output, a file in a folder, named as the
// original names it, or a file of the given name.
func (p *postprocess) create() (*postprocOutput, error) {
	switch p.output {
	case "", "-", "stdout":
		return &postprocOutput{Writer: p.streams.Out}, nil
	}
	var (
		file *outfile.File
		err  error
	)
	if info, statErr := os.Stat(p.output); statErr == nil && info.IsDir() {
		file, err = outfile.CreateNumbered(p.output, strconv.Itoa(int(p.env.pid())), ".rtrace.txt")
	} else {
		file, err = outfile.Create(p.output)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case p.legacy && !p.resolve:
		// The original's resolver, which would write the file, is silent.
		fmt.Fprintf(p.streams.Out, "INFO: Created text log file %s\n", file.Path())
	case !p.legacy && !p.quiet:
		fmt.Fprintf(p.streams.Err, "rtrace postproc: writing %s\n", file.Path())
	}
	return &postprocOutput{Writer: file, file: file}, nil
}

func (o *postprocOutput) close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}
