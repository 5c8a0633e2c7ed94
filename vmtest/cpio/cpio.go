// Package cpio writes archives in the format of Linux's first root file system: "newc"
// (Documentation/driver-api/early-userspace/buffer-format.rst of the kernel). A file may
// contain several archives, one after the other.
package cpio

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// Kinds of files, the upper bits of a mode.
const (
	typeSymlink   = 0o120000
	typeFile      = 0o100000
	typeDir       = 0o040000
	typeCharacter = 0o020000
)

const trailer = "TRAILER!!!"

// Writer writes an archive. Names are paths without a leading slash. Add a folder before its
// contents. All files belong to root and have no date, so that the same files make the same
// bytes. After an error, all methods return that error.
type Writer struct {
	w     io.Writer
	inode uint32
	at    int64 // bytes written
	err   error
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// Dir adds a folder.
func (w *Writer) Dir(name string, permissions uint32) error {
	w.header(name, typeDir|permissions, 0, 0, 0)
	return w.err
}

// Symlink adds a symbolic link.
func (w *Writer) Symlink(name, target string) error {
	w.header(name, typeSymlink|0o777, int64(len(target)), 0, 0)
	w.text(target)
	w.pad()
	return w.err
}

// Device adds a character device.
func (w *Writer) Device(name string, permissions, major, minor uint32) error {
	w.header(name, typeCharacter|permissions, 0, major, minor)
	return w.err
}

// File adds a file of size bytes, which it reads from content.
func (w *Writer) File(name string, permissions uint32, size int64, content io.Reader) error {
	w.header(name, typeFile|permissions, size, 0, 0)
	if w.err != nil {
		return w.err
	}
	n, err := io.CopyN(w.w, content, size)
	w.at += n
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		w.err = fmt.Errorf("archive %s: %w", name, err)
	}
	w.pad()
	return w.err
}

// Close writes the end of the archive. It does not close the underlying io.Writer.
func (w *Writer) Close() error {
	w.inode = 0
	w.header(trailer, 0, 0, 0, 0)
	if w.err == nil {
		w.err = errors.New("archive: written to after its end")
		return nil
	}
	return w.err
}

// header writes the 110 bytes of the header, and the name.
func (w *Writer) header(name string, mode uint32, size int64, major, minor uint32) {
	if w.err != nil {
		return
	}
	switch {
	case name == "" || strings.HasPrefix(name, "/") || strings.ContainsRune(name, 0):
		w.err = fmt.Errorf("archive: bad name %q", name)
		return
	case size > math.MaxUint32:
		w.err = fmt.Errorf("archive %s: %d bytes are too many for the format", name, size)
		return
	}
	links := uint32(1)
	if mode&0o170000 == typeDir {
		links = 2
	}
	const owner, group, date, device, checksum = 0, 0, 0, 0, 0
	w.text("070701")
	for _, field := range [...]uint32{
		w.inode, mode, owner, group, links, date, uint32(size),
		device, device, major, minor, uint32(len(name) + 1), checksum,
	} {
		w.text(fmt.Sprintf("%08X", field))
	}
	w.text(name + "\x00")
	w.pad()
	w.inode++
}

func (w *Writer) text(s string) {
	if w.err != nil {
		return
	}
	var n int
	n, w.err = io.WriteString(w.w, s)
	w.at += int64(n)
}

// pad pads the archive to a multiple of four bytes.
func (w *Writer) pad() { w.text("\x00\x00\x00"[:-w.at&3]) }
