package kernel

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"rtrace-bpf/vmtest/apt"
)

// Kernel is a kernel in the cache.
type Kernel struct {
	Release string // according to the package
	Version string // of the package
	Image   string // path of the file to boot
	Dir     string // where packages were unpacked
}

// Fetch finds the newest kernel of a series and unpacks it below cache. With modules it unpacks
// the packages completely and runs depmod, as virtme-ng requires; otherwise it unpacks only the
// image. It does not download what is there already.
func Fetch(ctx context.Context, from *apt.Private, cache, series, flavour, arch string, modules bool) (*Kernel, error) {
	pattern, err := Pattern(series, flavour, arch)
	if err != nil {
		return nil, err
	}
	all, err := from.Search(ctx, pattern)
	if err != nil {
		return nil, err
	}
	choice, err := Choose(all)
	if err != nil {
		return nil, fmt.Errorf("linux %s for %s: %w", series, arch, err)
	}
	k := &Kernel{Release: choice.Release(), Version: choice.Image.Version}
	packages := []apt.Package{choice.Image}
	wanted := func(name string) bool { return strings.HasPrefix(path.Base(name), "vmlinu") }
	if modules {
		if choice.Modules.Name != "" {
			packages = append(packages, choice.Modules)
		}
		k.Dir = filepath.Join(cache, k.Release+"_"+k.Version+"_modules")
		wanted = func(string) bool { return true }
	} else {
		k.Dir = filepath.Join(cache, k.Release+"_"+k.Version)
	}
	if err := unpackAll(ctx, from, packages, k.Dir, wanted, modules); err != nil {
		return nil, err
	}
	if k.Image, err = bootable(k.Dir); err != nil {
		return nil, fmt.Errorf("package %s: %w", choice.Image.Name, err)
	}
	return k, nil
}

// bootable finds the kernel in an unpacked package: in boot/ or, in newer releases, next to its
// modules.
func bootable(dir string) (string, error) {
	for _, pattern := range []string{"boot/vmlinu*", "usr/lib/modules/*/vmlinu*", "lib/modules/*/vmlinu*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return "", err
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	return "", errors.New("want exactly one kernel in it")
}

// unpackAll makes dir completely or not at all.
func unpackAll(ctx context.Context, from *apt.Private, packages []apt.Package, dir string, wanted func(string) bool, modules bool) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	// Another run may make the same folder at the same time.
	part, err := os.MkdirTemp(filepath.Dir(dir), "part-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(part)
	for _, p := range packages {
		deb, err := from.Download(ctx, p)
		if err != nil {
			return err
		}
		if err := apt.Unpack(ctx, deb, part, wanted); err != nil {
			return err
		}
	}
	if modules {
		if err := indexModules(ctx, part); err != nil {
			return err
		}
	}
	if err := os.Rename(part, dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keep an unpacked kernel: %w", err)
	}
	return nil
}

// indexModules makes modules.dep, which Debian's packages do not contain.
func indexModules(ctx context.Context, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "lib")); err != nil {
		if err := os.Symlink("usr/lib", filepath.Join(dir, "lib")); err != nil {
			return err
		}
	}
	releases, err := os.ReadDir(filepath.Join(dir, "lib", "modules"))
	if err != nil || len(releases) != 1 {
		return fmt.Errorf("modules in %s: %d releases, want one: %w", dir, len(releases), err)
	}
	out, err := exec.CommandContext(ctx, "depmod", "-b", dir, releases[0].Name()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("depmod: %w: %s", err, out)
	}
	return nil
}
