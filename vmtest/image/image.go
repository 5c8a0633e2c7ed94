// Package image collects the files of a guest and writes them as the archive that its kernel
// unpacks. Programs are added together with the libraries that they need.
package image

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rtrace-bpf/vmtest/cpio"
)

// Image is a tree of files. Most have the same path in a root file system on the host (Root),
// which may be the host's own.
type Image struct {
	root    string
	entries map[string]entry // by path in the guest, without a leading slash
	parsed  map[string]bool  // by path in the guest: files whose libraries were added
}

// entry is one file of the guest.
type entry struct {
	kind        fs.FileMode // ModeDir, ModeSymlink, ModeCharDevice, or 0 for a file
	permissions uint32
	target      string // of a symbolic link
	from        string // the file on the host; empty if the bytes are in data
	data        []byte
	major       uint32
	minor       uint32
}

// New returns an image without files. Programs and libraries are taken from root, a folder of
// the host; "/" is the host's own root. Without a root, libraries are not added.
func New(root string) *Image {
	return &Image{root: root, entries: make(map[string]entry), parsed: make(map[string]bool)}
}

// inGuest returns the key of a path.
func inGuest(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// Dir adds an empty folder, and its parents.
func (im *Image) Dir(name string) {
	for at := inGuest(name); at != ""; at = inGuest(path.Dir("/" + at)) {
		if _, known := im.entries[at]; known {
			return
		}
		im.entries[at] = entry{kind: fs.ModeDir, permissions: 0o755}
	}
}

// Device adds a character device.
func (im *Image) Device(name string, permissions, major, minor uint32) {
	im.Dir(path.Dir("/" + name))
	im.entries[inGuest(name)] = entry{kind: fs.ModeCharDevice, permissions: permissions, major: major, minor: minor}
}

// Symlink adds a symbolic link.
func (im *Image) Symlink(name, target string) {
	im.Dir(path.Dir("/" + name))
	im.entries[inGuest(name)] = entry{kind: fs.ModeSymlink, target: target}
}

// Text adds a file with the given contents.
func (im *Image) Text(name string, permissions uint32, data []byte) {
	im.Dir(path.Dir("/" + name))
	im.entries[inGuest(name)] = entry{permissions: permissions, data: data}
}

// File adds the file from of the host, from any folder, and the libraries that it needs.
func (im *Image) File(name, from string) error {
	info, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("add to the image: %w", err)
	}
	im.Dir(path.Dir("/" + name))
	im.entries[inGuest(name)] = entry{permissions: permissions(info), from: from}
	if err := im.libraries(inGuest(name), from); err != nil {
		return fmt.Errorf("add %s to the image: %w", name, err)
	}
	return nil
}

// Tree adds the contents of a folder of the host, from any place, as data: it does not add
// libraries.
func (im *Image) Tree(name, from string) error {
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("add to the image: %w", err)
		}
		below, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		at := path.Join(name, filepath.ToSlash(below))
		switch d.Type() {
		case fs.ModeDir:
			im.Dir(at)
		case fs.ModeSymlink:
			target, err := os.Readlink(file)
			if err != nil {
				return err
			}
			im.Symlink(at, target)
		case 0:
			info, err := d.Info()
			if err != nil {
				return err
			}
			im.entries[inGuest(at)] = entry{permissions: permissions(info), from: file}
		}
		return nil
	})
}

// Path adds a file or a folder of the root at its own path: with all links on the way, with all
// contents of a folder, and with the libraries that programs need. In a folder, a file may lack
// libraries: it cannot run on the host either, or it is loaded by a program that brings them,
// like Java's.
func (im *Image) Path(name string) error {
	at, err := im.resolve(inGuest(name))
	if err != nil {
		return fmt.Errorf("add %s to the image: %w", name, err)
	}
	top := filepath.Join(im.root, at)
	info, err := os.Lstat(top)
	if err != nil {
		return fmt.Errorf("add to the image: %w", err)
	}
	if !info.IsDir() {
		if err := im.libraries(at, top); err != nil {
			return fmt.Errorf("add %s to the image: %w", name, err)
		}
		return nil
	}
	return filepath.WalkDir(top, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(im.root, file)
		if err != nil || d.IsDir() {
			return err
		}
		at, err := im.resolve(inGuest(below))
		if err != nil {
			return nil // a broken link
		}
		_ = im.libraries(at, filepath.Join(im.root, at)) // adds the libraries that exist
		return nil
	})
}

// resolve adds the links that lead to a file of the root, and the file, and returns the path of
// the file itself.
func (im *Image) resolve(name string) (string, error) {
	rest := strings.Split(name, "/")
	at := ""
	for links := 0; len(rest) > 0; {
		next := inGuest(path.Join("/", at, rest[0]))
		rest = rest[1:]
		info, err := os.Lstat(filepath.Join(im.root, next))
		if err != nil {
			return "", err
		}
		switch info.Mode().Type() {
		case fs.ModeSymlink:
			target, err := os.Readlink(filepath.Join(im.root, next))
			if err != nil {
				return "", err
			}
			if links++; links > 40 {
				return "", fmt.Errorf("%s: a circle of links", name)
			}
			im.entries[next] = entry{kind: fs.ModeSymlink, target: target}
			if !path.IsAbs(target) {
				target = path.Join("/", at, target)
			}
			rest = append(strings.Split(inGuest(target), "/"), rest...)
			at = ""
		case fs.ModeDir:
			if _, known := im.entries[next]; !known && next != "" {
				im.entries[next] = entry{kind: fs.ModeDir, permissions: permissions(info)}
			}
			at = next
		case 0:
			if len(rest) > 0 {
				return "", fmt.Errorf("%s is not a folder", next)
			}
			im.entries[next] = entry{permissions: permissions(info), from: filepath.Join(im.root, next)}
			at = next
		default:
			return "", fmt.Errorf("%s: %s is neither file nor folder", name, info.Mode().Type())
		}
	}
	return at, nil
}

func permissions(info fs.FileInfo) uint32 { return uint32(info.Mode().Perm()) }

// Write writes the archive.
func (im *Image) Write(to io.Writer) error {
	w := cpio.NewWriter(to)
	// In sorted order, a folder precedes its contents.
	for _, name := range slices.Sorted(maps.Keys(im.entries)) {
		if err := im.entries[name].write(w, name); err != nil {
			return err
		}
	}
	return w.Close()
}

func (e entry) write(w *cpio.Writer, name string) error {
	switch {
	case e.kind == fs.ModeDir:
		return w.Dir(name, e.permissions)
	case e.kind == fs.ModeSymlink:
		return w.Symlink(name, e.target)
	case e.kind == fs.ModeCharDevice:
		return w.Device(name, e.permissions, e.major, e.minor)
	case e.from == "":
		return w.File(name, e.permissions, int64(len(e.data)), bytes.NewReader(e.data))
	}
	f, err := os.Open(e.from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.File(name, e.permissions, info.Size(), f)
}
