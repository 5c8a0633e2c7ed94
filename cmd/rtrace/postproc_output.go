package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"rtrace-bpf/encoder"
	"rtrace-bpf/encoder/sptext"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/safefile"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/trace"
)

// postprocOutput is the output of the command.
type postprocOutput struct {
	trace.Writer
	text   *sptext.Writer // nil for the binary form
	binary *convert       // nil for text
	file   *outfile.File  // nil for standard output
}

// create opens the output: standard output, a file in a folder with the name that the
// original uses, or a file of the given name.
func (p *postprocess) create() (*postprocOutput, error) {
	if p.output == "" || p.output == "-" || p.output == "stdout" {
		if p.format != "text" && p.output == "" && p.streams.OutTerminal {
			return nil, &terminalError{binaryContent(".rtrace")}
		}
		return p.encode(&postprocOutput{})
	}
	suffix := ".rtrace.txt"
	if p.format != "text" {
		suffix = ".rtrace"
	}
	var (
		file *outfile.File
		err  error
	)
	if strings.HasSuffix(p.output, "/") {
		if err := safefile.MakeFolder(p.output); err != nil {
			return nil, err
		}
	}
	if info, statErr := os.Stat(p.output); statErr == nil && info.IsDir() {
		file, err = outfile.CreateNumbered(p.output, strconv.Itoa(int(p.env.pid())), suffix)
	} else {
		file, err = outfile.Create(p.ctx, p.output, nil)
	}
	if errors.Is(err, os.ErrExist) {
		return nil, cli.WithHint(err, "no file is overwritten; name another one, or a directory")
	}
	if err != nil {
		return nil, cli.WithHint(err, missingFolder(p.output, err))
	}
	switch {
	case p.legacy && !p.resolve:
		// The original's resolver, which would write the file, prints nothing.
		fmt.Fprintf(p.streams.Out, "INFO: Created text log file %s\n", file.Path())
	case !p.legacy && !p.quiet:
		fmt.Fprintf(p.streams.Err, "rtrace %s: writing %s\n", p.command, file.Path())
	}
	return p.encode(&postprocOutput{file: file})
}

// encode connects the encoder to an output.
func (p *postprocess) encode(o *postprocOutput) (*postprocOutput, error) {
	to := p.streams.Out
	if o.file != nil {
		to = o.file
	}
	err := o.encode(p, to)
	if err != nil && o.file != nil {
		err = errors.Join(err, o.file.Discard())
	}
	return o, err
}

func (o *postprocOutput) encode(p *postprocess, to io.Writer) (err error) {
	if p.format == "text" {
		o.text, err = sptext.New(to, sptext.Options{KeepSeq: true, Legacy: p.legacy, Timestamp: p.env.timeText()})
		o.Writer = o.text
		return err
	}
	c := &convert{format: p.format}
	if c.encoder, err = encoder.New(p.format, to, encoder.Options{KeepOpaque: true}); err != nil {
		return err
	}
	if o.file != nil && o.file.Regular() && p.in.more {
		c.output = o.file.Path()
		c.side, err = sidefile.NewWriter(c.output+".side", encoder.PositionsOf(p.format, c.encoder))
	}
	o.binary, o.Writer = c, c
	return err
}

// finish completes the output, or discards it if err makes it worthless.
func (o *postprocOutput) finish(err error) error {
	switch {
	case o.binary != nil:
		err = o.binary.finish(err)
	case err == nil:
		err = o.text.Close()
	}
	if o.file == nil {
		return err
	}
	if err != nil {
		return errors.Join(err, o.file.Discard())
	}
	return o.file.Close()
}
