package main

import (
	"cmp"
	"errors"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/recording/snapshot"
)

// snapshotFlags select the snapshots that are written while processes are recorded.
type snapshotFlags struct{ snapshot.Options }

func (s *snapshotFlags) declare(f *pflag.FlagSet) {
	f.Var((*flags.Duration)(&s.Every), "snapshot", "every `TIME`, such as 30s, and at the end, write the live blocks and the sums of each call site to a new file next to the trace, such as TRACE.snapshot-0001.pb.gz")
	f.Var(flags.Word(&s.Format, "", snapshot.Formats()...), "snapshot-format", "write snapshots as `FORMAT`: pprof (default), folded (stacks with their live bytes) or json (as rtrace-bpf top --json)")
}

// check returns an error if the snapshots do not go with other flags.
func (s *snapshotFlags) check(c *config) error {
	switch {
	case s.Every == 0 && s.Format != "":
		return errors.New("--snapshot-format goes with --snapshot TIME: add it, or leave --snapshot-format out")
	case s.Every == 0:
		return nil
	case s.Every < snapshot.Least:
		return errors.New("--snapshot: the time is too short; write 100ms or more")
	case c.output.toStdout():
		return errors.New("--snapshot writes files to the directory of the trace, and -o - has none: name a file or a directory")
	case c.dotnet.alone():
		return errors.New("--snapshot does not go with --dotnet alone, which records no native calls")
	}
	return nil
}

// options returns which snapshots are written.
func (s *snapshotFlags) options() snapshot.Options {
	return snapshot.Options{Every: s.Every, Format: cmp.Or(s.Format, snapshot.Formats()[0])}
}
