package output

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/internal/safefile"
)

// OpenFile creates the file for the trace of a process: in a directory a new one, with a
// number. It never overwrites a file. ctx ends waiting for a reader of a FIFO.
func OpenFile(ctx context.Context, o *Options, pid int) (*outfile.File, error) {
	if o.Stdout != nil {
		f, ok := o.Stdout.(*os.File)
		if !ok {
			return nil, errors.New("standard output is not a file")
		}
		return outfile.Wrap(f, "standard output"), nil
	}
	dir := o.directory()
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return o.numbered(pid)
	}
	if err != nil && endsAsDirectory(o.Path) {
		if err := safefile.MakeFolder(dir); err != nil {
			return nil, err
		}
		return o.numbered(pid)
	}
	f, err := outfile.Create(ctx, o.Path, func() { o.waiting(true) })
	o.waiting(false)
	if errors.Is(err, os.ErrExist) {
		return nil, cli.WithHint(err, "a trace never overwrites a file; name another file or a directory")
	}
	if folder := filepath.Dir(o.Path); errors.Is(err, os.ErrNotExist) {
		if _, e := os.Stat(folder); errors.Is(e, os.ErrNotExist) {
			return nil, cli.WithHint(err, "the directory is missing; create it first: "+cli.CommandLine("mkdir", "-p", folder))
		}
	}
	return f, err
}

// Nowhere returns a trace that is not written: the records go somewhere else.
func Nowhere(pid int) (*Trace, error) {
	file, err := outfile.Create(context.Background(), os.DevNull, nil)
	if err != nil {
		return nil, err
	}
	return &Trace{options: new(Options), pid: pid, file: file}, nil
}

func (o *Options) waiting(on bool) {
	if o.Waiting != nil {
		o.Waiting(on)
	}
}

func (o *Options) numbered(pid int) (*outfile.File, error) {
	return outfile.CreateNumbered(o.directory(), fmt.Sprintf("rtrace-raw-%d", pid), o.Suffix)
}

func (o *Options) directory() string {
	if o.Path == "" {
		return "."
	}
	return o.Path
}

// Taken reports whether the output is a file that exists: it has no room for another trace.
func (o *Options) Taken() bool {
	if o.Stdout != nil {
		return true
	}
	info, err := os.Stat(o.directory())
	return err == nil && !info.IsDir()
}
