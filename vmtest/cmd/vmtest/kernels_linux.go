package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// kernels is a kernel to boot, and how.
type kernels struct {
	h       *host
	series  string
	vmlinuz string // one's own; else the newest of the series

	path    string // of the file to boot
	backend string
	kvm     bool
}

// settle gets the kernel and decides how to boot it.
func (k *kernels) settle(ctx context.Context) (err error) {
	get := func(backend string) (string, error) {
		if k.vmlinuz != "" {
			if _, err := os.Stat(k.vmlinuz); err != nil {
				return "", fmt.Errorf("kernel: %w", err)
			}
			return filepath.Abs(k.vmlinuz)
		}
		found, err := k.h.kernelOf(ctx, k.series, backend)
		if err != nil {
			return "", err
		}
		return found.Image, nil
	}
	if k.backend, k.kvm, err = k.h.choose(ctx, get); err != nil {
		return err
	}
	k.path, err = get(k.backend)
	return err
}

// title is how the kernel is called in results.
func (k *kernels) title() string {
	if k.vmlinuz != "" {
		return filepath.Base(k.vmlinuz)
	}
	return k.series
}
