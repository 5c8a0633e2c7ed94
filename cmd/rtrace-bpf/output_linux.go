package main

import (
	"context"
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
	"rtrace-bpf/internal/safefile"
	"rtrace-bpf/internal/sidefile"
	"rtrace-bpf/internal/spool"
	"rtrace-bpf/trace"
)

// open makes the output before anything is attached, so that a wrong path
// costs the process nothing.
func (x *session) open(ctx context.Context) error {
	c := x.config
	var err error
	if x.out, err = x.output(ctx); err != nil {
		return err
	}
	if err := errors.Join(x.openPagemap(), x.attachFiles()); err != nil {
		x.closePages()
		return errors.Join(err, x.dropAttached(), x.out.Discard())
	}
	var to io.Writer = x.out
	if c.toStdout() && x.streams.OutTerminal && c.isText() {
		to = printable.NewWriter(to) // it names files of other people
	}
	if c.postproc.on {
		if x.postproc, err = startPostprocessor(c.postproc.options, to, x.streams.Err); err != nil {
			return errors.Join(err, x.dropAttached(), x.out.Discard())
		}
		to = x.postproc
	}
	var file *spool.File
	if c.dotnet.native {
		if x.managed, err = openBeside(ctx, c, x.pid, x.status, x.spoolFolder()); err != nil {
			x.managed = nil
			return errors.Join(err, x.dropAttached(), x.out.Discard())
		}
	}
	if c.dotnet.native || c.names() && x.out.Regular() {
		if file, err = spool.Create(x.spoolFolder()); err != nil {
			return errors.Join(err, x.discard())
		}
		to = &roomy{to, file}
	}
	encoding := c.encoding()
	if c.format == "nettrace" {
		x.functions = x.newFunctions()
		encoding.Nettrace.Symbols = x.functions
	}
	if x.encoder, err = encoder.New(c.format, to, encoding); err == nil {
		err = x.openFiles(file)
	}
	if err == nil {
		err = x.openLeaks()
	}
	if err != nil {
		return errors.Join(err, x.discard())
	}
	return nil
}

// openFiles decides what the records go through on their way to the encoder.
// file is not nil if they are kept until the end.
func (x *session) openFiles(file *spool.File) error {
	f := &files{encoder: x.encoder, attach: x.attachments, syscalls: x.messages.syscalls, functions: x.messages.functions}
	x.sink = f
	if x.scene != nil {
		x.scene.to, f.processors = f, x.scene.processors()
	}
	switch {
	case file != nil:
		x.spooled = &spooled{file: file, to: f, names: x.named, path: x.out.Path(), status: x.status, hurry: x.hurry, turn: x.naming}
		if x.managed != nil {
			x.spooled.names, x.spooled.hurry = x.withManaged, nil
		}
		x.sink = x.spooled
	case x.config.names():
		x.sink = x.newOnline(f)
	case x.functions != nil:
		x.sink = &completing{f, x.naming}
	}
	if x.compiled != nil {
		x.compiled.Writer = x.sink
		x.sink = x.compiled
	}
	path := x.sidePath()
	if path == "" {
		return nil
	}
	if x.config.format == "sprtrace" {
		side := trace.Attachment{Name: sideAttachment, Path: filepath.Base(path)}
		f.attach = append([]trace.Attachment{side}, f.attach...)
	}
	var err error
	f.side, err = sidefile.NewWriter(path, encoder.PositionsOf(x.config.format, x.encoder))
	x.side = f.side
	return err
}

// spoolFolder is where records are kept until the end: beside the output, where there
// is room for it.
func (x *session) spoolFolder() string {
	if x.out.Regular() {
		return filepath.Dir(x.out.Path())
	}
	return os.TempDir()
}

// discard gives the files up: nothing was recorded.
func (x *session) discard() error {
	var err error
	x.closePages()
	if x.postproc != nil {
		_ = x.postproc.Close() // of an input without a trace it complains
	}
	err = errors.Join(err, x.dropAttached(), x.out.Discard())
	if x.managed != nil {
		err = errors.Join(err, x.managed.discard())
	}
	if x.spooled != nil {
		err = errors.Join(err, x.spooled.file.Close())
	}
	if x.side != nil {
		err = errors.Join(err, x.side.Discard())
	}
	return errors.Join(err, x.dropLeaks())
}

// sidePath names the file for what the format cannot hold, empty for none.
func (x *session) sidePath() string {
	switch {
	case x.config.side != "":
		return x.config.side
	case x.whole() || !x.out.Regular() || x.postproc != nil:
		return ""
	}
	return x.out.Path() + ".side"
}

// whole says whether the format holds all that a trace has.
func (x *session) whole() bool { return wholeFormat(x.config.format) }

func wholeFormat(name string) bool {
	f, err := encoder.Lookup(name)
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
		return cli.Usagef("-o %s takes one trace, and %d processes are selected: name a directory, as -o %s/, which is made if it is missing", r.config.output, len(r.pids), r.config.output)
	}
	return nil
}

// checkTerminal says why the trace cannot go where -o says: binary data is not for a
// terminal.
func (c *config) checkTerminal(s cli.Streams) error {
	if !c.toStdout() || !s.OutTerminal || c.postproc.on || c.dryRun {
		return nil
	}
	if format, err := encoder.Lookup(c.format); err != nil || !format.Binary {
		return err
	}
	return cli.WithHint(fmt.Errorf("-o -: standard output is a terminal, and %s is binary", c.format),
		"add --format text to watch the calls, or pipe the trace to a program")
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

// suffix is what the names of traces end with.
func (c *config) suffix() string {
	if c.postproc.on {
		return ".txt"
	}
	return encoder.Suffix(c.format)
}

// output opens the file that -o and --format select (decision 2 of docs/design/decisions.md).
// Cancelling ctx ends the wait for a reader of a FIFO.
func (x *session) output(ctx context.Context) (*outfile.File, error) {
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
		return outfile.CreateNumbered(dir, fmt.Sprintf("rtrace-raw-%d", x.pid), c.suffix())
	}
	if err != nil && endsAsDirectory(c.output) {
		if err := safefile.MakeFolder(dir); err != nil {
			return nil, err
		}
		return outfile.CreateNumbered(dir, fmt.Sprintf("rtrace-raw-%d", x.pid), c.suffix())
	}
	f, err := outfile.Create(ctx, c.output, x.tellWaits)
	if x.waiting != nil {
		x.waiting(false)
	}
	if errors.Is(err, os.ErrExist) {
		return nil, cli.WithHint(err, "a trace never overwrites a file; name another or a directory")
	}
	if folder := filepath.Dir(c.output); errors.Is(err, os.ErrNotExist) {
		if _, e := os.Stat(folder); errors.Is(e, os.ErrNotExist) {
			return nil, cli.WithHint(err, "the directory is missing; make it first: "+cli.CommandLine("mkdir", "-p", folder))
		}
	}
	return f, err
}

// tellWaits prints that the trace has no reader yet.
func (x *session) tellWaits() {
	if x.waiting != nil {
		x.waiting(true)
	}
	if !x.config.quiet {
		x.status.print("waiting for a reader of %s", x.config.output)
	}
}
