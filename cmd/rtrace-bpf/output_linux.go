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
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/internal/spool"
)

// open makes the output before anything is attached, so that a wrong path
// costs the process nothing.
func (x *session) open() error {
	c := x.config
	var err error
	if x.out, err = x.output(); err != nil {
		return err
	}
	var to io.Writer = x.out
	if c.toStdout() && x.streams.OutTerminal && c.isText() {
		to = printable.NewWriter(to) // it names files of other people
	}
	var file *spool.File
	if c.names() && x.out.Regular() {
		if file, err = spool.Create(filepath.Dir(x.out.Path())); err != nil {
			return errors.Join(err, x.out.Discard())
		}
		to = &roomy{x.out, file}
	}
	encoding := c.encoding()
	if c.format == "nettrace" {
		x.functions = x.newFunctions()
		encoding.Nettrace.Symbols = x.functions
	}
	if x.encoder, err = encoder.New(c.format, to, encoding); err == nil {
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
		x.spooled = &spooled{file: file, to: f, names: x.named, path: x.out.Path(), status: x.status, hurry: x.hurry, turn: x.naming}
		x.sink = x.spooled
	case x.config.names():
		x.sink = x.newOnline(f)
	case x.functions != nil:
		x.sink = &completing{f, x.naming}
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
	case x.whole() || !x.out.Regular():
		return ""
	}
	return x.out.Path() + ".side"
}

// whole says whether the format holds all that a trace has.
func (x *session) whole() bool {
	f, err := encoder.Lookup(x.config.format)
	return err == nil && f.Whole
}

// checkOutput says why the traces cannot all go where the command line says.
func (r *recording) checkOutput() error {
	if len(r.pids) == 1 {
		return nil
	}
	if r.config.toStdout() {
		return cli.Usagef("-o - takes one trace, and %d processes are selected: name a directory", len(r.pids))
	}
	if info, err := os.Stat(r.config.directory()); err == nil && !info.IsDir() || errors.Is(err, os.ErrNotExist) && !endsAsDirectory(r.config.output) {
		return cli.Usagef("-o %s takes one trace, and %d processes are selected: name a directory that exists", r.config.output, len(r.pids))
	}
	return nil
}

// directory is where traces go unless -o names a file.
func (c *config) directory() string {
	if c.output == "" {
		return "."
	}
	return c.output
}

// endsAsDirectory says whether a path cannot be that of a file.
func endsAsDirectory(path string) bool { return strings.HasSuffix(path, string(filepath.Separator)) }

// output opens what -o and --format say (decision 2).
func (x *session) output() (*outfile.File, error) {
	c := x.config
	if c.toStdout() {
		f, ok := x.streams.Out.(*os.File)
		if !ok {
			return nil, errors.New("standard output is no file")
		}
		return outfile.Wrap(f, "standard output"), nil
	}
	dir := c.directory()
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return outfile.CreateNumbered(dir, fmt.Sprintf("rtrace-raw-%d", x.pid), encoder.Suffix(c.format))
	}
	if err != nil && endsAsDirectory(c.output) {
		return nil, fmt.Errorf("open output directory: %w", err)
	}
	f, err := outfile.Create(c.output)
	if errors.Is(err, os.ErrExist) {
		return nil, cli.WithHint(err, "a trace never overwrites a file; name another or a directory")
	}
	return f, err
}
