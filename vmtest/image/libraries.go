package image

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// triplets are Debian's names for the folders of libraries.
var triplets = map[elf.Machine]string{
	elf.EM_X86_64:  "x86_64-linux-gnu",
	elf.EM_386:     "i386-linux-gnu",
	elf.EM_AARCH64: "aarch64-linux-gnu",
}

// libraries adds the interpreter and the libraries that a file needs, and those that they need,
// in the way of the dynamic loader. Files that are not ELF files need none.
func (im *Image) libraries(name, from string) error {
	if im.root == "" {
		return nil
	}
	if im.parsed[name] {
		return nil
	}
	im.parsed[name] = true // for cycles
	err := im.findLibraries(name, from)
	im.parsed[name] = err == nil // what is missing may be added later
	return err
}

func (im *Image) findLibraries(name, from string) error {
	f, err := elf.Open(from)
	if err != nil {
		// Scripts, data, archives, and ELF files that no loader loads.
		return nil //nolint:nilerr // not an ELF file
	}
	defer f.Close()
	if f.Type != elf.ET_EXEC && f.Type != elf.ET_DYN {
		return nil
	}
	loader := interpreter(f)
	if loader != "" {
		if err := im.Path(loader); err != nil {
			return err
		}
	}
	needed, err := f.ImportedLibraries()
	if err != nil {
		return nil //nolint:nilerr // a file with only debugging information
	}
	dirs := im.searched(f, name)
	var missing error
	for _, library := range needed {
		if library == "libc.so" {
			continue // musl's libc is its loader, which the program brings
		}
		if err := im.library(library, dirs, f.Machine); err != nil {
			missing = errors.Join(missing, fmt.Errorf("%s needs %s: %w", name, library, err))
		}
	}
	return missing
}

func interpreter(f *elf.File) string {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			if b, err := io.ReadAll(p.Open()); err == nil {
				return string(bytes.TrimRight(b, "\x00"))
			}
		}
	}
	return ""
}

// searched returns the folders in which the loader looks.
func (im *Image) searched(f *elf.File, name string) []string {
	var dirs []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		paths, err := f.DynString(tag)
		if err != nil {
			continue
		}
		for _, list := range paths {
			for dir := range strings.SplitSeq(list, ":") {
				origin := path.Dir("/" + name)
				dir = strings.NewReplacer("$ORIGIN", origin, "${ORIGIN}", origin).Replace(dir)
				dirs = append(dirs, dir)
			}
		}
	}
	if f.Class == elf.ELFCLASS32 {
		dirs = append(dirs, "/lib32", "/usr/lib32") // for gcc -m32
	}
	triplet := triplets[f.Machine]
	return append(dirs, "/lib/"+triplet, "/usr/lib/"+triplet, "/usr/local/lib", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
}

// library adds a library from the first folder that has one for the machine.
func (im *Image) library(library string, dirs []string, machine elf.Machine) error {
	for _, dir := range dirs {
		at := path.Join(dir, library)
		from := filepath.Join(im.root, at)
		there := im.entries[inGuest(at)].from // added from outside the root, such as a program's own library
		if there != "" {
			from = there
		}
		f, err := elf.Open(from)
		if err != nil {
			continue
		}
		f.Close()
		switch {
		case f.Machine != machine:
		case there != "":
			return nil
		default:
			return im.Path(at)
		}
	}
	return fmt.Errorf("it is not in %s", im.root)
}

// Program adds a program, which it finds in the way of a shell.
func (im *Image) Program(name string) error {
	for _, dir := range []string{"/usr/bin", "/bin", "/usr/sbin", "/sbin"} {
		if err := im.Path(path.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return fmt.Errorf("add program %s to the image: %w", name, os.ErrNotExist)
}
