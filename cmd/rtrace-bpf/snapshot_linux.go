package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/recording/snapshot"
)

// snapshotFlags select the snapshots that are written while processes are recorded.
type snapshotFlags struct {
	snapshot.Options
	only bool // no trace is written
}

func (s *snapshotFlags) declare(f *pflag.FlagSet) {
	f.Var((*flags.Duration)(&s.Every), "snapshot", "every `TIME`, such as 30s, and at the end, write the live blocks and the sums of each call site to a new file next to the trace, such as TRACE.snapshot-0001.pb.gz")
	f.Var(flags.Word(&s.Format, "", snapshot.Formats()...), "snapshot-format", "write snapshots as `FORMAT`: pprof (default), folded (stacks with their live bytes) or json (as rtrace-bpf top --json)")
	f.BoolVar(&s.only, "no-trace", false, "with --snapshot, write the snapshots only, under the names that they have next to a trace")
}

// checkOnly returns an error if flags ask for a trace that is not written.
func (s *snapshotFlags) checkOnly(c *config) error {
	o := &c.output
	for _, x := range []struct {
		set  bool
		flag string
	}{
		{c.format.name != "sprtrace", "--format " + c.format.name},
		{o.postproc.on, "--postproc"},
		{len(o.attach) > 0, "--attach"},
		{c.pagemapped(), "--pagemap"},
		{c.allocators.heapInfo, "--heap-info"},
		{c.dotnet.native, "--dotnet"},
		{c.limits.maxSize > 0, "--max-size"},
	} {
		if x.set {
			return fmt.Errorf("%s is about the trace, and --no-trace writes none: leave one of them out", x.flag)
		}
	}
	return nil
}

// check returns an error if the snapshots do not go with other flags.
func (s *snapshotFlags) check(c *config) error {
	switch {
	case s.Every == 0 && s.Format != "":
		return errors.New("--snapshot-format goes with --snapshot TIME: add it, or leave --snapshot-format out")
	case s.Every == 0 && s.only:
		return errors.New("--no-trace goes with --snapshot TIME, which writes files without a trace: add it, or leave --no-trace out")
	case s.Every == 0:
		return nil
	case s.Every < snapshot.Least:
		return errors.New("--snapshot: the time is too short; write 100ms or more")
	case c.output.toStdout():
		return errors.New("--snapshot writes files to the directory of the trace, and -o - has none: name a file or a directory")
	case c.dotnet.alone():
		return errors.New("--snapshot does not go with --dotnet alone, which records no native calls")
	case s.only:
		return s.checkOnly(c)
	}
	return nil
}

// options returns which snapshots are written.
func (s *snapshotFlags) options() snapshot.Options {
	return snapshot.Options{Every: s.Every, Format: cmp.Or(s.Format, snapshot.Formats()[0])}
}
