package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"rtrace-bpf/vmtest/guest"
	"rtrace-bpf/vmtest/result"
	"rtrace-bpf/vmtest/suite"
)

// converter converts the output of a test program to events while it arrives.
type converter struct {
	pkg  *result.Package
	in   io.WriteCloser
	cmd  *exec.Cmd
	done chan error
}

func convert(ctx context.Context, r *result.Run, path string) (*converter, error) {
	c := &converter{pkg: r.Package(path), done: make(chan error, 1)}
	c.cmd = exec.CommandContext(ctx, "go", "tool", "test2json", "-t", "-p", path)
	c.cmd.Stderr = os.Stderr
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("go tool test2json: %w", err)
	}
	go func() { c.done <- c.pkg.Read(out) }()
	return c, nil
}

// end records how the program ended.
func (c *converter) end(status int, broken error) error {
	err := errors.Join(c.in.Close(), <-c.done, c.cmd.Wait())
	c.pkg.End(status, broken)
	return err
}

// follower collects the results from one machine.
type follower struct {
	m        *matrixRun
	r        *result.Run
	packages []suite.Package
	first    int // the machine's case has one job per package, starting with this one
	progress progress
	start    time.Time
	now      *converter // for the running job
	ended    int
}

// handle processes an event from the guest.
func (f *follower) handle(ctx context.Context, e guest.Event) error {
	p, err := f.packageOf(e)
	if err != nil {
		return err
	}
	seconds := time.Since(f.start).Seconds()
	switch e.Kind {
	case guest.Up:
		f.r.Version = e.Text
		f.progress.printf("linux %s runs after %.1f s", e.Text, seconds)
	case guest.Start:
		if f.now != nil {
			return errors.New("the guest started two jobs at once")
		}
		f.now, err = convert(ctx, f.r, p.Path)
		return err
	case guest.Output:
		if f.m.verbose {
			fmt.Print(e.Text)
		}
		_, err := io.WriteString(f.now.in, e.Text)
		return err
	case guest.End:
		if f.now == nil {
			return fmt.Errorf("the guest ended the tests of %s, whose start is not on the console", p.Path)
		}
		err := f.now.end(e.Status, nil)
		f.now = nil
		f.ended++
		f.progress.printf("%s ended with status %d after %.1f s", p.Path, e.Status, seconds)
		return err
	case guest.Error:
		f.r.Broken = p.Path + ": " + e.Text
	case guest.File:
		return f.m.addProfile(e.Text, e.Data)
	}
	return nil
}

// packageOf returns the package of the job of an event; without a job the result is
// meaningless. It returns an error if the machine runs jobs of another case: it did not read
// its kernel's command line, or the line was not passed on.
func (f *follower) packageOf(e guest.Event) (p suite.Package, err error) {
	if e.Kind != guest.Start && e.Kind != guest.End && e.Kind != guest.Error {
		return p, nil
	}
	if n := e.Job - f.first; n >= 0 && n < len(f.packages) {
		return f.packages[n], nil
	}
	return p, fmt.Errorf("the guest reports job %d, which does not belong to its case", e.Job)
}

// end records how the machine ended.
func (f *follower) end(err error) {
	f.r.Seconds = time.Since(f.start).Seconds()
	if f.now != nil {
		if why := f.now.end(0, errors.New("the machine stopped while these tests ran")); why != nil && err == nil {
			err = why
		}
	}
	if err == nil && f.ended != len(f.packages) {
		err = fmt.Errorf("the guest ran %d of %d packages", f.ended, len(f.packages))
	}
	if err != nil {
		f.r.Broken = err.Error()
	}
}
