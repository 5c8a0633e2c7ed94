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

// converter turns the output of a test program into events as it comes.
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

// end takes how the program ended.
func (c *converter) end(status int, broken error) error {
	err := errors.Join(c.in.Close(), <-c.done, c.cmd.Wait())
	c.pkg.End(status, broken)
	return err
}

// boot runs the plan on one kernel and collects what comes of it.
func (m *matrixFlags) boot(ctx context.Context, h *host, k *kernels, r *result.Run, packages []suite.Package) {
	r.Backend = k.backend
	if k.kvm {
		r.Backend += "+kvm"
	}
	fmt.Fprintf(os.Stderr, "vmtest: linux %s for %s, %s\n", k.title(), h.arch, r.Backend)
	start := time.Now()
	var now *converter
	ended := 0
	err := h.boot(ctx, k.backend, k.kvm, k.path, func(e guest.Event) error {
		p, err := jobsOf(e, packages)
		if err != nil {
			return err
		}
		switch e.Kind {
		case guest.Up:
			r.Version = e.Text
			fmt.Fprintf(os.Stderr, "vmtest: linux %s runs after %.1f s\n", e.Text, time.Since(start).Seconds())
		case guest.Start:
			if now != nil {
				return errors.New("the guest started two jobs at once")
			}
			now, err = convert(ctx, r, p.Path)
			return err
		case guest.Output:
			if m.verbose {
				fmt.Print(e.Text)
			}
			_, err := io.WriteString(now.in, e.Text)
			return err
		case guest.End:
			err := now.end(e.Status, nil)
			now = nil
			ended++
			fmt.Fprintf(os.Stderr, "vmtest: %s ended with status %d after %.1f s\n", p.Path, e.Status, time.Since(start).Seconds())
			return err
		case guest.Error:
			r.Broken = p.Path + ": " + e.Text
		case guest.File:
			if m.cover == "" {
				return fmt.Errorf("the guest sent %s, which nobody asked for", e.Text)
			}
			return appendProfile(m.cover, e.Data)
		}
		return nil
	})
	r.Seconds = time.Since(start).Seconds()
	if now != nil {
		if why := now.end(0, errors.New("the machine stopped while these tests ran")); why != nil && err == nil {
			err = why
		}
	}
	if err == nil && ended != len(packages) {
		err = fmt.Errorf("the guest ran %d of %d packages", ended, len(packages))
	}
	if err != nil {
		r.Broken = err.Error()
	}
}
