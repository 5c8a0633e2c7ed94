package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rtrace-bpf/vmtest/guest"
	"rtrace-bpf/vmtest/image"
	"rtrace-bpf/vmtest/kernel"
	"rtrace-bpf/vmtest/result"
	"rtrace-bpf/vmtest/suite"
)

// matrixFlags are the flags of the matrix.
type matrixFlags struct {
	settings
	kernels string
	must    string
	vmlinuz []string
	run     string
	skip    string
	timeout string
	junit   string
	tap     string
	cover   string
	verbose bool
}

// matrix runs the tests of packages on several kernels.
func matrix(ctx context.Context, args []string) (int, error) {
	var m matrixFlags
	f := m.declare("matrix", "matrix [flags] [PACKAGE...]\n\nPackages are those of the tracer unless they are named.")
	f.StringVar(&m.kernels, "kernels", "5.10 6.1 6.12 6.18", "series, separated by spaces; none with --vmlinuz unless they are named")
	f.StringVar(&m.must, "must", "6.1 6.12", "series that it is an error not to find")
	f.StringArrayVar(&m.vmlinuz, "vmlinuz", nil, "own kernel to boot; may be given again")
	f.StringVar(&m.run, "run", "", "only tests that match, as go test takes it")
	f.StringVar(&m.skip, "skip", "", "no tests that match, as go test takes it")
	f.StringVar(&m.timeout, "timeout", "20m", "time for the tests of a package, as go test takes it")
	f.StringVar(&m.junit, "junit", "", "write the results as JUnit's XML to this file")
	f.StringVar(&m.tap, "tap", "", "write the results in the Test Anything Protocol to this file")
	f.StringVar(&m.cover, "coverprofile", "", "write the coverage of all runs together to this file")
	f.BoolVarP(&m.verbose, "verbose", "v", false, "print what tests print as it comes")
	if err := f.Parse(args); err != nil {
		return exitUsage, err
	}
	if err := m.check(); err != nil {
		return exitUsage, err
	}
	if len(m.vmlinuz) > 0 && !f.Changed("kernels") {
		m.kernels = ""
	}
	patterns := f.Args()
	if len(patterns) == 0 {
		patterns = []string{"./tracer/...", "./cmd/rtrace-bpf/..."}
	}
	h, clean, err := newHost(ctx, &m.settings)
	if err != nil {
		return exitBroken, err
	}
	defer clean()
	runs, err := m.all(ctx, h, patterns)
	if err != nil {
		return exitBroken, err
	}
	return m.report(runs)
}

// all builds the tests and runs them on each kernel.
func (m *matrixFlags) all(ctx context.Context, h *host, patterns []string) ([]*result.Run, error) {
	cover := ""
	if m.cover != "" {
		cover = strings.Join(patterns, ",")
		if err := os.WriteFile(m.cover, nil, 0o644); err != nil {
			return nil, err
		}
	}
	fmt.Fprintln(os.Stderr, "vmtest: building the tests and the programs that they trace")
	packages, err := h.target.Build(ctx, patterns, cover)
	if err != nil {
		return nil, err
	}
	args := []string{"-test.v=test2json", "-test.timeout=" + m.timeout}
	if m.run != "" {
		args = append(args, "-test.run="+m.run)
	}
	if m.skip != "" {
		args = append(args, "-test.skip="+m.skip)
	}
	programs := ""
	for _, p := range packages {
		if programs, err = h.target.Prepare(ctx, p, suite.Selection(args)); err != nil {
			return nil, err
		}
	}
	h.fill = func(im *image.Image) error {
		if err := h.addUserland(im); err != nil {
			return err
		}
		for _, p := range packages {
			if err := h.target.AddTo(im, p, programs); err != nil {
				return err
			}
		}
		return nil
	}
	var runs []*result.Run
	one := func(k kernels) error {
		k.h = h
		r := &result.Run{Title: k.title(), Arch: m.arch}
		runs = append(runs, r)
		switch err := k.settle(ctx); {
		case errors.Is(err, kernel.ErrNotServed) && !slices.Contains(strings.Fields(m.must), k.series):
			r.Missing = err.Error()
		case err != nil:
			r.Broken = err.Error()
		default:
			inGuest := suite.GuestPrograms
			if k.backend == backendVNG {
				inGuest = programs
			}
			h.plan.Jobs = nil
			for _, p := range packages {
				all, files := args, []string(nil)
				if cover != "" {
					files = []string{"/tmp/vmtest/" + filepath.Base(p.Binary) + ".cover"}
					all = append(slices.Clone(args), "-test.coverprofile="+files[0])
				}
				h.plan.Jobs = append(h.plan.Jobs, p.Job(all, files, inGuest, m.environment()))
			}
			m.boot(ctx, h, &k, r, packages)
		}
		result.Failures(os.Stdout, r)
		result.Skips(os.Stdout, r)
		return ctx.Err()
	}
	for series := range strings.FieldsSeq(m.kernels) {
		if err := one(kernels{series: series}); err != nil {
			return nil, err
		}
	}
	for _, path := range m.vmlinuz {
		if err := one(kernels{vmlinuz: path}); err != nil {
			return nil, err
		}
	}
	if len(runs) == 0 {
		return nil, &usageError{errors.New("no kernels are given")}
	}
	return runs, nil
}

// report writes the results in all forms and returns the exit code.
func (m *matrixFlags) report(runs []*result.Run) (int, error) {
	for path, write := range map[string]func(io.Writer, []*result.Run) error{m.junit: result.JUnit, m.tap: result.TAP} {
		if path == "" {
			continue
		}
		f, err := os.Create(path)
		if err != nil {
			return exitBroken, err
		}
		if err := errors.Join(write(f, runs), f.Close()); err != nil {
			return exitBroken, err
		}
	}
	fmt.Println()
	if err := result.Table(os.Stdout, runs); err != nil {
		return exitBroken, err
	}
	code := exitGood
	for _, r := range runs {
		switch {
		case r.Broken != "":
			return exitBroken, nil
		case !r.Good():
			code = exitFailed
		case r.Missing != "" && code == exitGood:
			code = exitMissing
		}
	}
	return code, nil
}

// appendProfile adds the profile of one run to that of all.
func appendProfile(path string, profile []byte) error {
	before, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	mode, blocks, _ := strings.Cut(string(profile), "\n")
	if len(before) == 0 {
		blocks = mode + "\n" + blocks
	}
	return os.WriteFile(path, append(before, blocks...), 0o644)
}

// jobsOf tells which job of a plan an event is of.
func jobsOf(e guest.Event, packages []suite.Package) (suite.Package, error) {
	if e.Job < 0 || e.Job >= len(packages) {
		return suite.Package{}, fmt.Errorf("the guest speaks of job %d of %d", e.Job, len(packages))
	}
	return packages[e.Job], nil
}
