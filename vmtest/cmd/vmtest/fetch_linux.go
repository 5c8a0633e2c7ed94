package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"rtrace-bpf/vmtest/kernel"
)

// fetch downloads kernels and prints their paths.
func fetch(ctx context.Context, args []string) (int, error) {
	var s settings
	f := s.declare("fetch", "fetch [flags]")
	series := f.String("kernels", "6.1 6.12", "series, separated by spaces")
	name := f.String("package", "", "fetch the newest package of this name instead, and print its path")
	if err := f.Parse(args); err != nil {
		return exitUsage, err
	}
	if err := s.check(); err != nil {
		return exitUsage, err
	}
	if *name != "" {
		return fetchPackage(ctx, &s, *name)
	}
	code := exitGood
	for name := range strings.FieldsSeq(*series) {
		k, err := s.kernelOf(ctx, name, s.backend)
		switch {
		case errors.Is(err, kernel.ErrNotServed):
			fmt.Fprintf(os.Stderr, "*** SKIPPED: %v ***\n", err)
			code = exitMissing
		case err != nil:
			return exitBroken, err
		default:
			fmt.Printf("%s\t%s\t%s\t%s\n", name, k.Release, k.Version, k.Image)
		}
	}
	return code, nil
}

// fetchPackage downloads the newest package of a name.
func fetchPackage(ctx context.Context, s *settings, name string) (int, error) {
	private, err := s.archive(ctx)
	if err != nil {
		return exitBroken, err
	}
	all, err := private.Search(ctx, "^"+regexp.QuoteMeta(name)+"$")
	if err != nil {
		return exitBroken, err
	}
	if len(all) != 1 {
		return exitMissing, fmt.Errorf("no suite has a package %s", name)
	}
	path, err := private.Download(ctx, all[0])
	if err != nil {
		return exitBroken, err
	}
	fmt.Println(path)
	return exitGood, nil
}
