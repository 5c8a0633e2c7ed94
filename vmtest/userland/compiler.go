package userland

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rtrace-bpf/vmtest/apt"
)

// compilers returns the packages of a cross compiler, by triplet. Installing them would remove
// gcc-multilib, which uses the same folders.
func compilers(triplet string) []string {
	name := strings.ReplaceAll(triplet, "_", "-") // x86_64
	return []string{"gcc-" + name, "g++-" + name}
}

// Compiler is a cross compiler that was unpacked into a folder.
type Compiler struct {
	root      string // folder of the compiler's packages
	libraries string // libraries that its programs need and this machine lacks
	triplet   string
	search    string // further folders for the linker, if any
}

// CrossCompiler gets Debian's cross compiler for the machine of a triplet, with headers and
// libraries. It unpacks the compiler below cache unless it is there. from must serve this
// machine's architecture.
func CrossCompiler(ctx context.Context, from *apt.Private, release, cache, triplet string) (*Compiler, error) {
	dir, err := unpacked(ctx, from, release, cache, compilers(triplet))
	if err != nil {
		return nil, fmt.Errorf("get a compiler for %s: %w", triplet, err)
	}
	c := &Compiler{root: dir, libraries: filepath.Join(dir, "not-on-this-machine"), triplet: triplet}
	return c, c.linkLibraries()
}

// linkLibraries collects the libraries of the compiler that this machine lacks. For the others,
// above all the C library, this machine's must be used, because they belong to its loader.
func (c *Compiler) linkLibraries() error {
	if err := os.MkdirAll(c.libraries, 0o755); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(c.root, "usr", "lib", "*-linux-gnu", "*.so*"))
	if err != nil {
		return err
	}
	for _, path := range found {
		below, err := filepath.Rel(c.root, path)
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join("/", below)); err == nil {
			continue
		}
		if err := os.Symlink(path, filepath.Join(c.libraries, filepath.Base(path))); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// Command writes a script to path that compiles for the machine; name is gcc or g++.
func (c *Compiler) Command(path, name string) error {
	// The compiler's programs are found next to it, headers and libraries in the sysroot.
	script := fmt.Sprintf("#!/bin/sh\nLD_LIBRARY_PATH='%s' exec '%s' --sysroot='%s' \"$@\"%s\n",
		c.libraries, filepath.Join(c.root, "usr", "bin", c.triplet+"-"+name), c.root, c.search)
	return os.WriteFile(path, []byte(script), 0o755)
}

// allocators are the libraries that programs are linked with in addition to those of the
// compiler.
var allocators = []string{"libjemalloc.*", "libtcmalloc_minimal.*", "libmimalloc.*"}

// LinkWith lets programs be linked with the allocators in a guest's root, through links in a
// new folder below work. The root's C library is not used, because it is not the compiler's. If
// the root has musl, LinkWith writes the file specs, with which the compiler makes programs for
// it.
func (c *Compiler) LinkWith(root, work, specs string) error {
	dir, err := os.MkdirTemp(work, "linked-")
	if err != nil {
		return err
	}
	for _, pattern := range allocators {
		found, err := filepath.Glob(filepath.Join(root, "usr", "lib", c.triplet, pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := os.Symlink(path, filepath.Join(dir, filepath.Base(path))); err != nil {
				return err
			}
		}
	}
	c.search = " '-L" + dir + "'"
	musl := filepath.Join(root, "usr", "lib", strings.TrimSuffix(c.triplet, "gnu")+"musl", "musl-gcc.specs")
	text, err := os.ReadFile(musl)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(specs, []byte(strings.ReplaceAll(string(text), "/usr/", filepath.Join(root, "usr")+"/")), 0o644)
}
