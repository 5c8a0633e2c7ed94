package output

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	if is, err := o.isDirectory(); err != nil {
		return nil, err
	} else if is {
		return outfile.CreateNumbered(o.directory(), numbered(pid), o.Suffix)
	}
	f, err := outfile.Create(ctx, o.Path, func() { o.waiting(true) })
	o.waiting(false)
	if errors.Is(err, os.ErrExist) {
		return nil, cli.WithHint(err, "a trace never overwrites a file; name another file or a directory")
	}
	return f, o.explain(err)
}

// isDirectory reports whether traces go to a directory, which it creates if Path can be that
// of nothing else.
func (o *Options) isDirectory() (bool, error) {
	dir := o.directory()
	info, err := os.Stat(dir)
	if err == nil && info.IsDir() {
		return true, nil
	}
	if err != nil && endsAsDirectory(o.Path) {
		return true, safefile.MakeFolder(dir)
	}
	return false, nil
}

// explain adds a hint to an error if the directory of Path is missing.
func (o *Options) explain(err error) error {
	if folder := filepath.Dir(o.Path); errors.Is(err, os.ErrNotExist) {
		if _, e := os.Stat(folder); errors.Is(e, os.ErrNotExist) {
			return cli.WithHint(err, "the directory is missing; create it first: "+cli.CommandLine("mkdir", "-p", folder))
		}
	}
	return err
}

// unwritten returns a trace that is not written. In a directory it gets a number that no file
// there has.
func unwritten(o *Options, pid int) (*Trace, error) {
	is, err := o.isDirectory()
	if err != nil {
		return nil, err
	}
	dir, name := o.directory(), numbered(pid)
	if !is {
		dir, name = filepath.Split(o.Path)
		if dir == "" {
			dir = "."
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, o.explain(err)
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(files, func(f os.DirEntry) bool {
			rest, ok := strings.CutPrefix(f.Name(), name)
			return ok && (rest == "" || rest[0] == '.')
		})
	}
	base := o.Path
	if is {
		n := 0
		for taken(fmt.Sprintf("%s-%d", name, n)) {
			n++
		}
		base = filepath.Join(dir, fmt.Sprintf("%s-%d", name, n))
	}
	t, err := Nowhere(pid)
	if err == nil {
		t.base = base
	}
	return t, err
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

// numbered returns the name of the traces of a process in a directory, before their number.
func numbered(pid int) string { return fmt.Sprintf("rtrace-raw-%d", pid) }

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
	return err == nil && !info.IsDir() || err != nil && o.Unwritten
}
