package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"rtrace-bpf/vmtest/guest"
	"rtrace-bpf/vmtest/image"
	"rtrace-bpf/vmtest/kernel"
	"rtrace-bpf/vmtest/machine"
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
	jobs    int
	orQEMU  bool
	full    bool
	verbose bool
}

// matrixRun is a run of the matrix.
type matrixRun struct {
	matrixFlags
	specials []string // the cases of the runs
	cases    []string // those, without repetitions, in the order of their jobs

	adding   sync.Mutex // serialises changes of the coverage profile
	printing sync.Mutex // serialises the output of results
}

// matrix runs the tests of packages on several kernels.
func matrix(ctx context.Context, args []string) (int, error) {
	var m matrixRun
	f := m.declare("matrix", "matrix [flags] [PACKAGE...]\n\nPackages are those of the tracer unless they are named.")
	f.StringVar(&m.kernels, "kernels", "5.10 6.1 6.12 6.12:preempt 6.12:lockdown 6.18", "series, separated by spaces, also with a backend, 6.12:vng, or a case, 6.12:preempt; none with --vmlinuz unless they are named")
	f.StringVar(&m.must, "must", "6.1 6.12", "series that it is an error not to find")
	f.StringArrayVar(&m.vmlinuz, "vmlinuz", nil, "own kernel to boot; may be given again")
	f.StringVar(&m.run, "run", "", "only tests that match, as go test takes it")
	f.StringVar(&m.skip, "skip", "", "no tests that match, as go test takes it")
	f.StringVar(&m.timeout, "timeout", "150m", "time for the tests of a package, as go test takes it")
	f.StringVar(&m.junit, "junit", "", "write the results as JUnit's XML to this file")
	f.StringVar(&m.tap, "tap", "", "write the results in the Test Anything Protocol to this file")
	f.StringVar(&m.cover, "coverprofile", "", "write the coverage of all runs together to this file")
	f.IntVar(&m.jobs, "jobs", 0, "machines to run at once (default as many as there are CPUs and memory for)")
	f.BoolVar(&m.orQEMU, "or-qemu", false, "plain QEMU where virtme-ng is not installed or does not get as far as the first test")
	f.BoolVar(&m.full, "full", false, "tests do all that they do on this machine, not what go test -short leaves")
	f.BoolVarP(&m.verbose, "verbose", "v", false, "print what tests print as it comes; one machine at a time")
	if err := f.Parse(args); err != nil {
		return exitUsage, err
	}
	if err := m.check(); err != nil {
		return exitUsage, err
	}
	if m.jobs < 0 || f.Changed("jobs") && m.jobs == 0 {
		return exitUsage, &usageError{errors.New("--jobs: want at least 1")}
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
func (m *matrixRun) all(ctx context.Context, h *host, patterns []string) ([]*result.Run, error) {
	all, err := choices(h, m.kernels, m.vmlinuz)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		m.specials = append(m.specials, c.special)
	}
	m.cases = casesOf(all)
	packages, err := m.build(ctx, h, patterns)
	if err != nil {
		return nil, err
	}
	runs := make([]*result.Run, len(all))
	for i, c := range all { // one after the other, because they share an apt
		runs[i] = &result.Run{Title: c.word, Arch: m.arch}
		m.settle(ctx, c, runs[i])
	}
	jobs := m.jobs
	if jobs == 0 {
		if jobs, err = machinesAtOnce(&m.settings, all); err != nil {
			return nil, err
		}
	}
	if m.verbose {
		jobs = 1
	}
	var wait sync.WaitGroup
	free := make(chan struct{}, jobs)
	for i, c := range all {
		free <- struct{}{}
		wait.Go(func() {
			defer func() { <-free }()
			if runs[i].Missing == "" && runs[i].Broken == "" && ctx.Err() == nil {
				m.boot(ctx, c, runs[i], packages)
			}
			m.printing.Lock()
			defer m.printing.Unlock()
			result.Failures(os.Stdout, runs[i])
			result.Skips(os.Stdout, runs[i])
			result.Slow(os.Stdout, runs[i])
		})
	}
	wait.Wait()
	return runs, ctx.Err()
}

// build builds the tests and the programs that they trace.
func (m *matrixRun) build(ctx context.Context, h *host, patterns []string) ([]suite.Package, error) {
	cover := ""
	if m.cover != "" {
		cover = strings.Join(patterns, ",")
		if err := os.WriteFile(m.cover, nil, 0o644); err != nil {
			return nil, err
		}
	}
	progress{}.printf("building the tests and the programs that they trace")
	packages, err := h.target.Build(ctx, patterns, cover)
	if err != nil {
		return nil, err
	}
	args := m.arguments(m.testsOf(m.cases))
	for _, p := range packages {
		if h.programs, err = h.target.Prepare(ctx, p, suite.Selection(args)); err != nil {
			return nil, err
		}
	}
	h.jobs = func(programs string) (jobs []guest.Job) {
		for _, special := range m.cases {
			for _, p := range packages {
				args, files := m.arguments(m.tests(special)), []string(nil)
				if cover != "" {
					files = []string{"/tmp/vmtest/" + filepath.Base(p.Binary) + ".cover"}
					args = append(args, "-test.coverprofile="+files[0])
				}
				job := p.Job(args, files, programs, m.environmentIn(special, programs))
				job.Case = special
				jobs = append(jobs, job)
			}
		}
		return jobs
	}
	h.fill = func(im *image.Image) error {
		if err := h.addUserland(im); err != nil {
			return err
		}
		for _, p := range packages {
			if err := h.target.AddTo(im, p, h.programs); err != nil {
				return err
			}
		}
		return nil
	}
	return packages, nil
}

// settle gets a kernel, or records in the run why there is none.
func (m *matrixRun) settle(ctx context.Context, c *choice, r *result.Run) {
	err := c.settle(ctx)
	if errors.Is(err, errNoVNG) && m.orQEMU {
		m.insteadOfVNG(c, err)
		err = c.settleForQEMU(ctx)
	}
	switch {
	case errors.Is(err, kernel.ErrNotServed) && !slices.Contains(strings.Fields(m.must), c.series):
		r.Missing = err.Error()
	case err != nil:
		r.Broken = err.Error()
	}
}

func (m *matrixRun) insteadOfVNG(c *choice, why error) {
	progress{c.word}.printf("*** PLAIN QEMU INSTEAD OF VIRTME-NG: %v ***", why)
}

// boot runs the jobs on one kernel and collects the results.
func (m *matrixRun) boot(ctx context.Context, c *choice, r *result.Run, packages []suite.Package) {
	first := slices.Index(m.cases, c.special) * len(packages)
	f := &follower{m: m, r: r, packages: packages, first: first, progress: progress{c.word}, start: time.Now()}
	limits := c.h.limits()
	if c.backend == backendVNG && m.orQEMU {
		limits.Tries = 1 // plain QEMU is the second try
	}
	run := func() error {
		r.Backend = c.by()
		f.progress.printf("booting for %s by %s", m.arch, r.Backend)
		return c.h.boot(ctx, c, limits, f.progress, func(e guest.Event) error { return f.handle(ctx, e) })
	}
	err := run()
	if errors.Is(err, machine.ErrNoStart) && c.backend == backendVNG && m.orQEMU && ctx.Err() == nil {
		m.insteadOfVNG(c, err)
		limits = c.h.limits()
		r.Version = ""
		if err = c.settleForQEMU(ctx); err == nil {
			err = run()
		}
	}
	f.end(err)
}
