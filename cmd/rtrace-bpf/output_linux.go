package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/internal/spool"
)

// open makes the output before anything is attached, so that a wrong path
// costs the process nothing.
func (x *session) open() error {
	c := x.config
	var err error
	if x.out, err = output(c, x.streams); err != nil {
		return err
	}
	var to io.Writer = x.out
	var file *spool.File
	if c.names() && x.out.Regular() {
		if file, err = spool.Create(filepath.Dir(x.out.Path())); err != nil {
			return errors.Join(err, x.out.Discard())
		}
		to = &roomy{x.out, file}
	}
	if x.encoder, err = encoder.New(c.format, to, c.encoding()); err == nil {
		err = x.openFiles(file)
	}
	if err != nil {
		return errors.Join(err, x.discard())
	}
	return nil
}

// openFiles decides what the records go through on their way to the encoder.
// file is not nil if they are kept until the end.
func (x *session) openFiles(file *spool.File) error {
	f := &files{encoder: x.encoder}
	x.sink = f
	switch {
	case file != nil:
		x.spooled = &spooled{file: file, to: f, names: x.named, path: x.out.Path(), status: &x.status, hurry: x.hurry}
		x.sink = x.spooled
	case x.config.names():
		x.sink = x.newOnline(f)
	}
	path := x.sidePath()
	if path == "" {
		return nil
	}
	if x.config.format == "sprtrace" {
		f.attach = path
	}
	var err error
	f.side, err = sidefile.NewWriter(path, encoder.PositionsOf(x.config.format, x.encoder))
	x.side = f.side
	return err
}

// discard gives the files up: nothing was recorded.
func (x *session) discard() error {
	err := x.out.Discard()
	if x.spooled != nil {
		err = errors.Join(err, x.spooled.file.Close())
	}
	if x.side != nil {
		err = errors.Join(err, x.side.Discard())
	}
	return err
}

// sidePath names the file for what the format cannot hold, empty for none.
func (x *session) sidePath() string {
	switch {
	case x.config.side != "":
		return x.config.side
	case x.config.format == "jsonl" || !x.out.Regular():
		return ""
	}
	return x.out.Path() + ".side"
}

// output opens what -o and --format say (decision 2).
func output(c *config, s cli.Streams) (*outfile.File, error) {
	if c.toStdout() {
		f, ok := s.Out.(*os.File)
		if !ok {
			return nil, errors.New("standard output is no file")
		}
		return outfile.Wrap(f, "standard output"), nil
	}
	dir := c.output
	if dir == "" {
		dir = "."
	}
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return outfile.CreateNumbered(dir, fmt.Sprintf("rtrace-raw-%d", c.pid), encoder.Suffix(c.format))
	}
	if err != nil && strings.HasSuffix(c.output, string(filepath.Separator)) {
		return nil, fmt.Errorf("open output directory: %w", err)
	}
	f, err := outfile.Create(c.output)
	if errors.Is(err, os.ErrExist) {
		return nil, cli.WithHint(err, "a trace never overwrites a file; name another or a directory")
	}
	return f, err
}
