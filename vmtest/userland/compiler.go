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

// compilers names the packages of a cross compiler, by triplet. To install them
// would remove gcc-multilib, which has the same folders.
func compilers(triplet string) []string {
	name := strings.ReplaceAll(triplet, "_", "-") // x86_64
	return []string{"gcc-" + name, "g++-" + name}
}

// Compiler is a cross compiler that lies unpacked in a folder.
type Compiler struct {
	root      string // of the compiler's packages
	libraries string // what its programs need and this machine has not
	triplet   string
	search    string // where else the linker looks, if anywhere
}

// CrossCompiler gets Debian's cross compiler for the machine of a triplet, with
// headers and libraries, and unpacks it below cache unless it is there. From
// serves this machine's architecture.
func CrossCompiler(ctx context.Context, from *apt.Private, release, cache, triplet string) (*Compiler, error) {
	dir, err := unpacked(ctx, from, release, cache, compilers(triplet))
	if err != nil {
		return nil, fmt.Errorf("get a compiler for %s: %w", triplet, err)
	}
	c := &Compiler{root: dir, libraries: filepath.Join(dir, "not-on-this-machine"), triplet: triplet}
	return c, c.linkLibraries()
}

// linkLibraries collects the libraries of the compiler that this machine lacks.
// Others, the C library above all, must be those that belong to its loader.
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

// Command writes a script to path that compiles for the machine; name is gcc or
// g++.
func (c *Compiler) Command(path, name string) error {
	// Its programs are found beside it, headers and libraries in the sysroot.
	script := fmt.Sprintf("#!/bin/sh\nLD_LIBRARY_PATH='%s' exec '%s' --sysroot='%s' \"$@\"%s\n",
		c.libraries, filepath.Join(c.root, "usr", "bin", c.triplet+"-"+name), c.root, c.search)
	return os.WriteFile(path, []byte(script), 0o755)
}

// allocators are what programs are linked with besides what comes with the compiler.
var allocators = []string{"libjemalloc.*", "libtcmalloc_minimal.*", "libmimalloc.*"}

// LinkWith lets programs be linked with the allocators that lie in a guest's root, by
// links in a new folder below work: the root's C library is not the compiler's. The
// file specs is written, by which the compiler makes programs of the root's musl, if
// it has one.
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
