// Ociarchive writes the container images of a release as a file in the OCI image layout:
//
//	ociarchive FILE VERSION SECONDS ARCHITECTURE=ROOT...
//
// Each ROOT is the folder with the root file system of an architecture. SECONDS since 1970
// are the time of the images and of their files.
package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"rtrace-bpf/release/oci"
)

func main() {
	if err := write(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ociarchive:", err)
		os.Exit(1)
	}
}

func write(args []string) error {
	if len(args) < 4 {
		return errors.New("usage: ociarchive FILE VERSION SECONDS ARCHITECTURE=ROOT, one or more")
	}
	seconds, err := strconv.ParseInt(args[2], 10, 64)
	if err != nil {
		return err
	}
	at := time.Unix(seconds, 0)
	roots := map[string]string{}
	for _, arg := range args[3:] {
		arch, root, _ := strings.Cut(arg, "=")
		roots[arch] = root
	}
	image := oci.Image{
		Name:       oci.Tag(args[1]),
		Entrypoint: []string{"/usr/bin/rtrace-bpf"},
		Env:        []string{"PATH=/usr/bin"},
		Labels: map[string]string{
			"org.opencontainers.image.title":       "rtrace-bpf",
			"org.opencontainers.image.description": "Traces the allocations of running processes with eBPF",
			"org.opencontainers.image.version":     args[1],
			"org.opencontainers.image.created":     at.UTC().Format(time.RFC3339),
			"org.opencontainers.image.licenses":    "Apache-2.0 AND (GPL-2.0-only OR BSD-2-Clause)",
		},
		Time: at,
	}
	out, err := os.Create(args[0])
	if err != nil {
		return err
	}
	return errors.Join(image.Write(out, roots), out.Close())
}
