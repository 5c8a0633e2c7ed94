// Package userland selects the programs of a guest, so that tests find there what `make
// need-test` installs here. They are the host's programs or, for a machine of another kind,
// those of the same packages for that machine.
package userland

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"rtrace-bpf/vmtest/image"
)

// Parts of a userland. Each includes everything that its programs need to run.
var parts = []struct {
	name     string
	programs []string
	paths    []string // patterns of files and folders
	packages []string // Debian packages with the programs and the paths
}{
	{
		name:     "shell",
		programs: []string{"sh", "cat", "true", "false", "sleep", "echo", "env", "ls", "unshare", "mount", "umount", "uname", "id", "kill", "setarch", "cp", "rm", "mkdir", "mkswap", "pivot_root", "swapoff", "swapon"},
		paths:    []string{"/bin/sh"}, // includes the link that /bin is
		packages: []string{"dash", "coreutils", "util-linux", "mount", "procps"},
	},
	{
		name: "libraries", // loaded by programs at run time, so that no file refers to them
		paths: []string{
			"/lib/*-linux-gnu/libgcc_s.so.1", "/lib/*-linux-gnu/libnss_files.so.2", "/usr/lib/*-linux-gnu/libstdc++.so.6",
			"/usr/lib/*-linux-gnu/libjemalloc.so.2",
		},
		packages: []string{"libc6", "libgcc-s1", "libstdc++6", "libjemalloc2"},
	},
	{
		// Allocators, including the names with which tests link programs.
		name: "allocators", programs: []string{"rg"},
		paths: []string{
			"/usr/lib/*-linux-gnu/libjemalloc.a", "/usr/lib/*-linux-gnu/libtcmalloc_minimal.*", "/usr/lib/*-linux-gnu/libmimalloc.so.*",
			"/usr/lib/*-linux-gnu/libmemusage.so", "/usr/lib/*-linux-musl/libc.so", "/usr/lib/*-linux-musl/musl-gcc.specs",
		},
		packages: []string{"libjemalloc-dev", "libgoogle-perftools-dev", "libtcmalloc-minimal4", "libmimalloc2.0", "musl", "musl-dev", "musl-tools", "ripgrep"},
	},
	{name: "python", programs: []string{"python3"}, paths: []string{"/usr/lib/python3.[0-9]*"}, packages: []string{"python3"}},
	{name: "sqlite", programs: []string{"sqlite3"}, packages: []string{"sqlite3"}},
	{name: "strace", programs: []string{"strace"}, packages: []string{"strace"}},
	{name: "binutils", programs: []string{"readelf", "objdump", "objcopy", "nm", "strip"}, packages: []string{"binutils"}},
	{name: "gdb", programs: []string{"gdb"}, paths: []string{"/usr/share/gdb"}, packages: []string{"gdb"}},
	{
		name: "c++", programs: []string{"g++"},
		paths: []string{
			"/usr/lib/gcc/*/*/cc1plus", "/usr/lib/gcc/*/*/include", "/usr/include/c++", "/usr/include/*-linux-gnu",
			"/usr/include/*.h", "/usr/include/linux", "/usr/include/asm-generic",
		},
		packages: []string{"g++", "libc6-dev"},
	},
	{
		// What else is needed to compile in the guest, where tests do that themselves.
		name: "toolchain", programs: []string{"gcc", "as", "ld"},
		paths: []string{
			"/usr/lib/gcc/*/*/cc1", "/usr/lib/gcc/*/*/collect2", "/usr/lib/gcc/*/*/liblto_plugin.so",
			"/usr/lib/gcc/*/*/lto-wrapper", "/usr/lib/gcc/*/*/*.o", "/usr/lib/gcc/*/*/libgcc*", "/usr/lib/gcc/*/*/libstdc++.so",
			"/usr/lib/*-linux-gnu/*crt*.o", "/usr/lib/*-linux-gnu/libc.so", "/usr/lib/*-linux-gnu/libc_nonshared.a",
			"/usr/lib/*-linux-gnu/libm.so", "/usr/lib/*-linux-gnu/lib*mvec*", "/usr/lib/*-linux-gnu/lib*thread.a", "/usr/lib/*-linux-gnu/libdl.a",
		},
		packages: []string{"gcc", "g++", "libc6-dev", "binutils"},
	},
	{name: "node", programs: []string{"node"}, paths: []string{"/usr/share/nodejs"}, packages: []string{"nodejs"}},
	{
		name: "java", programs: []string{"java", "javac"}, paths: []string{"/usr/lib/jvm/java-*", "/etc/java-*"},
		packages: []string{"default-jdk-headless"},
	},
}

// Names returns the names of all parts.
func Names() []string {
	var all []string
	for _, p := range parts {
		all = append(all, p.name)
	}
	return all
}

// Add adds the named parts to an image, from its root. It returns what is missing there; tests
// that need it will report that.
func Add(im *image.Image, root string, names []string) (missing []string, err error) {
	for _, name := range names {
		found := false
		for _, p := range parts {
			if p.name != name {
				continue
			}
			found = true
			for _, program := range p.programs {
				if err := im.Program(program); errors.Is(err, fs.ErrNotExist) {
					missing = append(missing, program)
				} else if err != nil {
					return nil, err
				}
			}
			for _, pattern := range p.paths {
				if err := addAll(im, root, pattern); err != nil {
					return nil, err
				}
			}
		}
		if !found {
			return nil, fmt.Errorf("userland %q: want some of %s", name, strings.Join(Names(), ", "))
		}
	}
	im.Text("/etc/passwd", 0o644, []byte("root:x:0:0:root:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n"))
	im.Text("/etc/group", 0o644, []byte("root:x:0:\nnogroup:x:65534:\n"))
	im.Text("/etc/hosts", 0o644, []byte("127.0.0.1 localhost vmtest\n"))
	return missing, nil
}

func addAll(im *image.Image, root, pattern string) error {
	found, err := filepath.Glob(filepath.Join(root, pattern))
	if err != nil {
		return err
	}
	for _, path := range found {
		at, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if err := im.Path(at); err != nil {
			return err
		}
	}
	return nil
}

// Machine returns the machine of a program, which must be built for Linux.
func Machine(path string) (elf.Machine, error) {
	f, err := elf.Open(path)
	if err != nil {
		return 0, fmt.Errorf("%s is not a program: %w", path, err)
	}
	defer f.Close()
	return f.Machine, nil
}
