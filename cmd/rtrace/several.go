package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/cli"
)

// tracesOf returns the files that args name. A directory stands for the traces in it, but
// not for those in its own directories; other files there are left out.
func tracesOf(args []string) (files []string, err error) {
	for _, arg := range args {
		info, err := os.Stat(arg)
		switch {
		case err != nil:
			return nil, cli.FileError("opening", arg, err)
		case !info.IsDir():
			files = append(files, arg)
			continue
		}
		in, err := tracesIn(arg)
		if err != nil {
			return nil, err
		}
		files = append(files, in...)
	}
	return files, nil
}

// withoutSides returns args without the side files of traces that are among them: a shell's
// pattern often names both.
func withoutSides(args []string) []string {
	return slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		name, side := strings.CutSuffix(arg, ".side")
		return side && slices.Contains(args, name)
	})
}

// tracesIn returns the traces in a directory, sorted by name.
func tracesIn(dir string) (files []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, cli.FileError("reading", dir, err)
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		if !e.Type().IsRegular() || strings.HasSuffix(name, ".side") {
			continue
		}
		t, err := decoder.OpenFile(name, decoder.Options{})
		switch {
		case errors.Is(err, decoder.ErrUnknown), errors.Is(err, decoder.ErrEmpty):
			continue
		case err == nil:
			_ = t.Close() // only read
		}
		files = append(files, name) // who reads it reports an error
	}
	if len(files) == 0 {
		return nil, cli.WithHint(fmt.Errorf("no file in %s is a trace", dir), "rtrace-bpf -p PID -d "+cli.Word(dir)+" records traces there")
	}
	return files, nil
}
