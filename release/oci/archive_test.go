package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// unpacked returns the files of an archive.
func unpacked(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	all := map[string]string{}
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Uid != 0 || h.Uname != "" || h.ModTime.Unix() != 1700000000 {
			t.Errorf("%s belongs to %d (%s) and is of %v", h.Name, h.Uid, h.Uname, h.ModTime)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = h.Linkname + string(content)
	}
}

// Each blob has the name of its hash, and the layers have the files of the folders.
func TestArchive(t *testing.T) {
	roots := map[string]string{"amd64": t.TempDir(), "arm64": t.TempDir()}
	for arch, dir := range roots {
		if err := os.WriteFile(filepath.Join(dir, "program"), []byte(arch), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("program", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
	}
	image := Image{Name: "1", Entrypoint: []string{"/program"}, Labels: map[string]string{"a": "b"}, Time: time.Unix(1700000000, 0)}
	var one, two bytes.Buffer
	for _, w := range []io.Writer{&one, &two} {
		if err := image.Write(w, roots); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the same folders make different archives")
	}
	files := unpacked(t, &one)
	for name, content := range files {
		if hash, ok := strings.CutPrefix(name, "blobs/sha256/"); ok {
			if sum := sha256.Sum256([]byte(content)); hex.EncodeToString(sum[:]) != hash {
				t.Errorf("%s has the hash %x", name, sum)
			}
		}
	}
	follow := func(d descriptor, to any) string {
		t.Helper()
		content := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if len(content) != d.Size {
			t.Errorf("%s has %d bytes, want %d", d.Digest, len(content), d.Size)
		}
		if to != nil {
			if err := json.Unmarshal([]byte(content), to); err != nil {
				t.Fatal(err)
			}
		}
		return content
	}
	var top, all index
	if err := json.Unmarshal([]byte(files["index.json"]), &top); err != nil {
		t.Fatal(err)
	}
	follow(top.Manifests[0], &all)
	got := map[string]map[string]string{}
	for _, d := range all.Manifests {
		var m manifest
		var c config
		follow(d, &m)
		follow(m.Config, &c)
		packed, err := gzip.NewReader(strings.NewReader(follow(m.Layers[0], nil)))
		if err != nil {
			t.Fatal(err)
		}
		plain, err := io.ReadAll(packed)
		if err != nil {
			t.Fatal(err)
		}
		if digest(plain) != c.RootFS.DiffIDs[0] || c.Architecture != d.Platform.Architecture {
			t.Errorf("%s: the configuration is of another layer: %v", c.Architecture, c)
		}
		got[c.Architecture] = unpacked(t, bytes.NewReader(plain))
	}
	want := map[string]map[string]string{
		"amd64": {"program": "amd64", "empty/": "", "link": "program"},
		"arm64": {"program": "arm64", "empty/": "", "link": "program"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got)\n%s", diff)
	}
}
