package oci

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// Image is what all architectures of an image have in common.
type Image struct {
	Name       string // of the image in the archive: its tag; see [Tag]
	Entrypoint []string
	Env        []string          // NAME=VALUE
	Labels     map[string]string // also the annotations of the index
	Time       time.Time         // of the image and of each file in it
}

// Media types of the parts (media-types.md of the specification).
const (
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar+gzip"
)

// Write writes an archive of images: roots has the folder of the root file system of each
// architecture, by its name in Go.
func (i *Image) Write(w io.Writer, roots map[string]string) error {
	blobs := blobs{}
	var manifests []descriptor
	for _, arch := range slices.Sorted(maps.Keys(roots)) {
		d, err := i.add(blobs, arch, roots[arch])
		if err != nil {
			return fmt.Errorf("image for %s: %w", arch, err)
		}
		manifests = append(manifests, d)
	}
	all, err := blobs.addJSON(typeIndex, index{2, typeIndex, manifests, i.Labels})
	if err != nil {
		return err
	}
	all.Annotations = map[string]string{"org.opencontainers.image.ref.name": i.Name}
	top, err := json.Marshal(index{2, typeIndex, []descriptor{all}, nil})
	if err != nil {
		return err
	}
	return i.pack(w, blobs, top)
}

// add adds the image of one architecture and returns its manifest.
func (i *Image) add(to blobs, arch, root string) (descriptor, error) {
	plain, packed, err := layer(root, i.Time)
	if err != nil {
		return descriptor{}, err
	}
	created := i.Time.UTC().Format(time.RFC3339)
	conf, err := to.addJSON(typeConfig, config{
		created, arch, "linux",
		process{i.Env, i.Entrypoint, "/", i.Labels},
		rootfs{"layers", []string{digest(plain)}},
		[]history{{created, "files of the release"}},
	})
	if err != nil {
		return descriptor{}, err
	}
	d, err := to.addJSON(typeManifest, manifest{2, typeManifest, conf, []descriptor{to.add(typeLayer, packed)}})
	d.Platform = &platform{arch, "linux"}
	return d, err
}

// pack writes the files of the layout.
func (i *Image) pack(w io.Writer, blobs blobs, index []byte) error {
	out := tar.NewWriter(w)
	files := map[string][]byte{"oci-layout": []byte(`{"imageLayoutVersion":"1.0.0"}`), "index.json": index}
	for sum, b := range blobs {
		files["blobs/sha256/"+sum] = b
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		h := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(files[name])), ModTime: i.Time, Format: tar.FormatUSTAR}
		if err := out.WriteHeader(&h); err != nil {
			return err
		}
		if _, err := out.Write(files[name]); err != nil {
			return err
		}
	}
	return out.Close()
}

// blobs are the parts of the images by their SHA-256.
type blobs map[string][]byte

func (b blobs) add(mediaType string, part []byte) descriptor {
	d := digest(part)
	b[d[len("sha256:"):]] = part
	return descriptor{MediaType: mediaType, Digest: d, Size: len(part)}
}

func (b blobs) addJSON(mediaType string, part any) (descriptor, error) {
	text, err := json.Marshal(part)
	return b.add(mediaType, text), err
}

func digest(part []byte) string {
	sum := sha256.Sum256(part)
	return "sha256:" + hex.EncodeToString(sum[:])
}
