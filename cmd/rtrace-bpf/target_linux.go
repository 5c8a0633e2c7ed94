package main

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/linux/selection"
)

// targetFlags select the processes that are traced.
type targetFlags struct {
	selection selection.Selection
	wait      bool // for a process that is not there yet
	follow    followFlags
}

func (t *targetFlags) declare(f *pflag.FlagSet) {
	f.VarP((*flags.PIDs)(&t.selection.PIDs), "pid", "p", "trace the running process `PID` with all its threads; separate several with commas, or repeat the flag")
	f.StringArrayVar(&t.selection.Comms, "comm", nil, "trace all processes whose command name is `NAME` now; may be repeated")
	flags.OfferCommands(f, "comm")
	f.BoolVar(&t.wait, "wait", false, "with --comm: wait for the next process on this machine that executes a program under that name, and trace it from its first instruction; --ready-file is created when rtrace-bpf waits")
	f.StringArrayVar(&t.selection.Cgroups, "cgroup", nil, "trace all processes that are now in the cgroup (v2) `PATH` or below it; PATH may be relative to the mount point of cgroups; may be repeated")
	f.StringArrayVar(&t.selection.Users, "uid", nil, "trace all processes whose effective user is now `USER`, a name or a number; may be repeated")
	t.follow.declare(f)
}

// checkValues returns an error if a description of processes cannot match any.
func (t *targetFlags) checkValues(*config) error {
	for _, kind := range []struct {
		flag      string
		selection selection.Selection
	}{
		{"--comm", selection.Selection{Comms: t.selection.Comms}},
		{"--cgroup", selection.Selection{Cgroups: t.selection.Cgroups}},
		{"--uid", selection.Selection{Users: t.selection.Users}},
	} {
		if err := kind.selection.Check(); err != nil {
			return fmt.Errorf("%s: %w", kind.flag, err)
		}
	}
	return nil
}

// checkWait returns an error if no process can be waited for.
func (t *targetFlags) checkWait(c *config) error {
	s := &t.selection
	switch {
	case !t.wait:
		return nil
	case c.command != nil:
		return errors.New("--wait is for a process that somebody else starts: a command after -- is traced from its start without it")
	case len(s.PIDs) > 0:
		return errors.New("--wait is for a process that does not run yet: leave -p out")
	case len(s.Comms) != 1 || len(s.Cgroups)+len(s.Users) > 0:
		return errors.New("--wait goes with one --comm NAME, and no other description of processes")
	case c.dotnet.on:
		return errors.New("--dotnet needs a running process: leave --wait out")
	case t.follow.on:
		return errors.New("--follow-forks follows running processes, or a command after --: leave --wait out")
	}
	return nil
}
