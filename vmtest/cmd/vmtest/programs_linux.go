package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"rtrace-bpf/vmtest/apt"
	"rtrace-bpf/vmtest/image"
	"rtrace-bpf/vmtest/suite"
	"rtrace-bpf/vmtest/userland"
)

// findRoot finds the programs for a guest: on this machine or, if the guest cannot run those,
// in packages of its release for the guest's architecture.
func (h *host) findRoot(ctx context.Context) error {
	if h.arch == hostArch {
		h.root = "/"
		return nil
	}
	release, err := apt.SystemRelease("/")
	if err != nil {
		return err
	}
	private, err := h.archive(ctx)
	if err != nil {
		return err
	}
	h.root, err = userland.Root(ctx, private, release, filepath.Join(h.cache, "roots-"+h.arch), h.userland)
	return err
}

// addUserland adds programs to a guest.
func (h *host) addUserland(im *image.Image) error {
	missing, err := userland.Add(im, h.root, h.userland)
	if len(missing) > 0 {
		fmt.Fprintf(os.Stderr, "vmtest: missing in the guest, because they are not in %s: %s\n", h.root, strings.Join(missing, ", "))
	}
	return err
}

// crossCompilers returns the environment variables that name compilers for the guest's
// architecture.
func (h *host) crossCompilers(ctx context.Context) ([]string, error) {
	release, err := apt.SystemRelease("/")
	if err != nil {
		return nil, err
	}
	here := *h.settings
	here.arch, here.private = hostArch, nil // the compiler runs on this machine
	private, err := here.archive(ctx)
	if err != nil {
		return nil, err
	}
	compiler, err := userland.CrossCompiler(ctx, private, release, filepath.Join(h.cache, "compilers"), suite.Triplet(h.arch))
	if err != nil {
		return nil, err
	}
	specs := filepath.Join(h.target.Work, "musl-gcc.specs")
	if err := compiler.LinkWith(h.root, h.target.Work, specs); err != nil {
		return nil, err
	}
	env := []string{"MUSL_SPECS=" + specs}
	for variable, name := range map[string]string{"CC": "gcc", "CXX": "g++"} {
		path := filepath.Join(h.target.Work, name)
		if err := compiler.Command(path, name); err != nil {
			return nil, err
		}
		env = append(env, variable+"="+path)
	}
	return env, nil
}
