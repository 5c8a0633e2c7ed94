package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"rtrace-bpf/vmtest/kernel"
)

// choice is a kernel to boot, and how.
type choice struct {
	h       *host
	word    string // the argument that selected it
	series  string
	vmlinuz string // the user's file; otherwise the newest of the series is used
	asked   string // the requested backend; empty for the one of the settings
	special string // the case; empty for an ordinary boot

	path    string // path of the file to boot
	backend string
	kvm     bool
	instead bool // plain QEMU is used because the requested backend does not work
}

// choices parses the requested kernels: series, each with an optional backend (6.12:vng) and
// case (6.12:preempt), and files.
func choices(h *host, series string, files []string) ([]*choice, error) {
	var all []*choice
	for word := range strings.FieldsSeq(series) {
		name, more, _ := strings.Cut(word, ":")
		c := &choice{h: h, word: word, series: name}
		for part := range strings.FieldsFuncSeq(more, func(r rune) bool { return r == ':' }) {
			_, isCase := bootCases[part]
			switch {
			case part == backendQEMU || part == backendVNG:
				c.asked = part
			case isCase:
				c.special = part
			default:
				return nil, &usageError{fmt.Errorf("kernel %q: want SERIES, SERIES:qemu or SERIES:vng, or a case after a colon: %s",
					word, strings.Join(caseNames(), ", "))}
			}
		}
		if _, err := kernel.Pattern(name, kernel.Generic, h.arch); err != nil {
			return nil, &usageError{err}
		}
		all = append(all, c)
	}
	for _, path := range files {
		all = append(all, &choice{h: h, word: filepath.Base(path), vmlinuz: path})
	}
	if len(all) == 0 {
		return nil, &usageError{errors.New("no kernels are given")}
	}
	return all, nil
}

// errNoVNG reports that virtme-ng is not installed.
var errNoVNG = errors.New("vng (virtme-ng) is not installed; see vmtest/README.md")

// settle gets the kernel and decides how to boot it.
func (c *choice) settle(ctx context.Context) (err error) {
	c.h.settling.Lock()
	defer c.h.settling.Unlock()
	backend := c.asked
	if backend == "" {
		backend = c.h.backend
	}
	_, noVNG := exec.LookPath("vng")
	if backend == backendVNG && noVNG != nil {
		return errNoVNG
	}
	if c.kvm, err = c.withKVM(ctx); err != nil {
		return err
	}
	if backend == backendAuto {
		backend = backendQEMU
		if c.kvm && noVNG == nil {
			backend = backendVNG
		}
	}
	c.backend = backend
	c.path, err = c.file(ctx, backend)
	return err
}

// settleForQEMU chooses plain QEMU, whatever was requested.
func (c *choice) settleForQEMU(ctx context.Context) (err error) {
	c.asked, c.instead = backendQEMU, true
	return c.settle(ctx)
}

// file returns the kernel's file for a backend.
func (c *choice) file(ctx context.Context, backend string) (string, error) {
	if c.vmlinuz != "" {
		if _, err := os.Stat(c.vmlinuz); err != nil {
			return "", fmt.Errorf("kernel: %w", err)
		}
		return filepath.Abs(c.vmlinuz)
	}
	found, err := c.h.kernelOf(ctx, c.series, backend)
	if err != nil {
		return "", err
	}
	return found.Image, nil
}

// withKVM reports whether to use KVM. A failed trial is not repeated, because it may take as
// long as its limit.
func (c *choice) withKVM(ctx context.Context) (bool, error) {
	if c.h.accel != "auto" {
		return c.h.accel == "kvm", nil
	}
	if c.h.noKVM {
		return false, nil
	}
	path, err := c.file(ctx, backendQEMU)
	if err != nil {
		return false, err
	}
	if why := c.h.tryKVM(ctx, path); why != nil {
		c.h.noKVM = true
		progress{}.printf("emulation, since KVM does not work here: %v", why)
		return false, ctx.Err()
	}
	return true, nil
}

// by returns the name of the way to boot in results.
func (c *choice) by() string {
	name := c.backend
	if c.kvm {
		name += "+kvm"
	}
	if c.instead {
		name += ", not vng"
	}
	return name
}
