package kernel

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"rtrace-bpf/vmtest/apt"
)

// Kernel is a kernel in the cache.
type Kernel struct {
	Release string // as the package names it
	Version string // of the package
	Image   string // path of the file to boot
	Dir     string // where packages were unpacked
}

// Fetch finds the newest kernel of a series and unpacks it below cache. With
// modules the whole of the packages is unpacked and depmod run, as virtme-ng
// needs it; else only the image. What is there already is not fetched again.
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

// bootable finds the kernel in an unpacked package: in boot/, in newer releases
// beside its modules.
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
	return "", errors.New("it has not one kernel")
}

// unpackAll makes dir whole or not at all.
func unpackAll(ctx context.Context, from *apt.Private, packages []apt.Package, dir string, wanted func(string) bool, modules bool) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	part := dir + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	for _, p := range packages {
		deb, err := from.Download(ctx, p)
		if err != nil {
			return err
		}
		if err := Unpack(ctx, deb, part, wanted); err != nil {
			return err
		}
	}
	if modules {
		if err := indexModules(ctx, part); err != nil {
			return err
		}
	}
	return os.Rename(part, dir)
}

// indexModules makes modules.dep, which Debian's packages leave to be made.
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

// Unpack unpacks what is wanted of a package into dir, files, folders and
// symbolic links; owners are not kept.
func Unpack(ctx context.Context, deb, dir string, wanted func(name string) bool) error {
	cmd := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", deb)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(deb), err)
	}
	err = unpackTar(out, dir, wanted)
	if err == nil {
		_, err = io.Copy(io.Discard, out)
	}
	out.Close() // dpkg-deb does not wait for a reader that gave up
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(deb), err)
	}
	return nil
}

func unpackTar(r io.Reader, dir string, wanted func(name string) bool) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // no name leads out of it
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // files are closed by themselves
	for in := tar.NewReader(r); ; {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path.Clean(h.Name), "./")
		if h.Typeflag == tar.TypeDir || !wanted(name) {
			continue
		}
		if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
			return err
		}
		switch h.Typeflag {
		case tar.TypeReg:
			err = unpackFile(root, name, h, in)
		case tar.TypeSymlink:
			err = root.Symlink(h.Linkname, name)
		case tar.TypeLink:
			err = root.Link(path.Clean(h.Linkname), name)
		}
		if err != nil {
			return err
		}
	}
}

func unpackFile(root *os.Root, name string, h *tar.Header, in io.Reader) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, h.FileInfo().Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}
