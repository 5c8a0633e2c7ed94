package userland

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rtrace-bpf/vmtest/apt"
)

// unneeded are folders of packages that programs do not read at run time.
var unneeded = []string{"usr/share/doc/", "usr/share/man/", "usr/share/info/", "usr/share/locale/", "usr/share/lintian/"}

// merged are folders that Debian's installer replaces with links to those below /usr.
var merged = []string{"bin", "sbin", "lib", "lib64"}

// Root returns a root file system with everything that the named parts need, for machines that
// cannot run the host's programs. It unpacks it below cache unless it is there. The packages
// are not configured, unlike in an installation.
func Root(ctx context.Context, from *apt.Private, release, cache string, names []string) (string, error) {
	packages := []string{"libc6"} // for the programs of the tests themselves
	for _, p := range parts {
		if slices.Contains(names, p.name) {
			packages = append(packages, p.packages...)
		}
	}
	return unpacked(ctx, from, release, cache, packages)
}

// unpacked returns the folder below cache with packages and everything that they depend on.
func unpacked(ctx context.Context, from *apt.Private, release, cache string, packages []string) (string, error) {
	closure, err := from.Closure(ctx, release, packages)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, release+"_"+closure.Key)
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	// Another run may make the same folder at the same time.
	part, err := os.MkdirTemp(cache, "part-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(part)
	if err := unpack(ctx, closure, part); err != nil {
		return "", err
	}
	if err := os.Rename(part, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("keep an unpacked root: %w", err)
	}
	return dir, nil
}

func unpack(ctx context.Context, closure *apt.Closure, dir string) error {
	for _, name := range merged {
		if err := os.MkdirAll(filepath.Join(dir, "usr", name), 0o755); err != nil {
			return err
		}
		if err := os.Symlink("usr/"+name, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := closure.Unpack(ctx, dir, func(name string) bool {
		return !slices.ContainsFunc(unneeded, func(below string) bool { return strings.HasPrefix(name, below) })
	}); err != nil {
		return err
	}
	return linkJava(dir)
}

// linkJava makes the links that an installation makes with update-alternatives.
func linkJava(dir string) error {
	found, err := filepath.Glob(filepath.Join(dir, "usr", "lib", "jvm", "*", "bin", "java*"))
	if err != nil {
		return err
	}
	for _, path := range found {
		target, err := filepath.Rel(filepath.Join(dir, "usr", "bin"), path)
		if err != nil {
			return err
		}
		link := filepath.Join(dir, "usr", "bin", filepath.Base(path))
		if err := os.Symlink(target, link); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
