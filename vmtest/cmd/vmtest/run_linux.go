package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"rtrace-bpf/vmtest/guest"
	"rtrace-bpf/vmtest/image"
	"rtrace-bpf/vmtest/kernel"
	"rtrace-bpf/vmtest/suite"
	"rtrace-bpf/vmtest/userland"
)

const hostArch = runtime.GOARCH

// run runs one test program and exits with its status.
func run(ctx context.Context, args []string) (int, error) {
	var s settings
	f := s.declare("run", "run [flags] TEST [ARG...]\n\nFor use as go test -exec 'vmtest run --kernel 6.12'.")
	f.SetInterspersed(false)
	series := f.String("kernel", "6.12", "series: the newest kernel of it is fetched")
	vmlinuz := f.String("vmlinuz", "", "kernel to boot instead of one of Debian's")
	if err := f.Parse(args); err != nil {
		return exitUsage, err
	}
	if f.NArg() == 0 {
		return exitUsage, &usageError{errors.New("run: no test program is given")}
	}
	binary, err := filepath.Abs(f.Arg(0))
	if err != nil {
		return exitBroken, err
	}
	what, err := userland.Machine(binary)
	if err != nil {
		return exitUsage, &usageError{err}
	}
	if !f.Changed("arch") { // go test has set it
		s.arch = map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[what]
	}
	if err := s.check(); err != nil {
		return exitUsage, err
	}
	h, clean, err := newHost(ctx, &s)
	if err != nil {
		return exitBroken, err
	}
	defer clean()
	c := &choice{h: h, series: *series, vmlinuz: *vmlinuz}
	if err := c.settle(ctx); errors.Is(err, kernel.ErrNotServed) {
		return exitMissing, err
	} else if err != nil {
		return exitBroken, err
	}
	return h.runOne(ctx, c, binary, f.Args()[1:])
}

func (h *host) runOne(ctx context.Context, c *choice, binary string, args []string) (int, error) {
	dir, err := os.Getwd()
	if err != nil {
		return exitBroken, err
	}
	p := suite.Package{Path: filepath.Base(binary), Dir: dir, Binary: filepath.Join(h.target.Work, filepath.Base(binary))}
	content, err := os.ReadFile(binary)
	if err != nil {
		return exitBroken, err
	}
	if err := os.WriteFile(p.Binary, content, 0o755); err != nil {
		return exitBroken, err
	}
	kept, files := suite.Arguments(args, dir)
	if h.programs, err = h.target.Prepare(ctx, p, suite.Selection(kept)); err != nil {
		return exitBroken, err
	}
	h.jobs = func(programs string) []guest.Job {
		return []guest.Job{p.Job(kept, files, programs, h.environment())}
	}
	h.fill = func(im *image.Image) error {
		return errors.Join(h.addUserland(im), h.target.AddTo(im, p, h.programs))
	}
	start := time.Now()
	code, ended := exitBroken, false
	err = h.boot(ctx, c, h.limits(), progress{}, func(e guest.Event) error {
		switch e.Kind {
		case guest.Up:
			progress{}.printf("linux %s (%s) runs after %.1f s", e.Text, c.by(), time.Since(start).Seconds())
		case guest.Output:
			fmt.Print(e.Text)
		case guest.Error:
			progress{}.printf("guest: %s", e.Text)
		case guest.File:
			return bringBack(files, e.Text, e.Data)
		case guest.End:
			code, ended = e.Status, true
		}
		return nil
	})
	if err != nil || !ended {
		return exitBroken, err
	}
	return code, nil
}

// bringBack writes a file that the guest sent, if it was requested.
func bringBack(asked []string, path string, data []byte) error {
	for _, a := range asked {
		below, err := filepath.Rel(a, path)
		if err != nil || !filepath.IsLocal(below) {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		return os.WriteFile(path, data, 0o644)
	}
	return fmt.Errorf("the guest sent %s, which was not requested", path)
}
