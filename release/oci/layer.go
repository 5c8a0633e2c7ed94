package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// layer returns a folder as a tar archive, plain and compressed. Files belong to root, and
// their order is that of their names.
func layer(root string, at time.Time) (plain, packed []byte, err error) {
	var archive, small bytes.Buffer
	out := tar.NewWriter(&archive)
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return addFile(out, path, filepath.ToSlash(name), d, at)
	})
	if err := errors.Join(err, out.Close()); err != nil {
		return nil, nil, err
	}
	zip := gzip.NewWriter(&small)
	_, err = zip.Write(archive.Bytes())
	err = errors.Join(err, zip.Close())
	return archive.Bytes(), small.Bytes(), err
}

// addFile adds one file, folder or symbolic link to an archive.
func addFile(out *tar.Writer, path, name string, d fs.DirEntry, at time.Time) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	var link string
	if info.Mode().Type() == fs.ModeSymlink {
		if link, err = os.Readlink(path); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	// Nothing else of this machine goes into the image.
	h = &tar.Header{Typeflag: h.Typeflag, Name: name, Linkname: link, Mode: h.Mode, Size: h.Size, ModTime: at, Format: tar.FormatUSTAR}
	if d.IsDir() {
		h.Name += "/"
	}
	if err := out.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
		return err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = out.Write(content)
	return err
}
