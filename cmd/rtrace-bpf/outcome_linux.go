package main

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer"
)

// outcome prints the summary of all sessions and returns what the exit status
// is made of: the failures if there are any, else what is missing.
func (r *recording) outcome() error {
	all := r.sum
	var errs []error
	for i := range r.ends {
		errs = append(errs, r.ends[i].err)
	}
	if r.count > 1 && !r.config.quiet {
		r.total(&all)
	}
	if err := r.failure(errs); err != nil {
		return err
	}
	var missing []string
	for i := range r.ends {
		if m := r.ends[i].missing; m != "" {
			missing = append(missing, m)
		}
	}
	switch {
	case all.LostEvents() > 0:
		missing = append(missing, fmt.Sprintf("%d events were lost (%s)", all.LostEvents(), lossList(&all)))
	case all.Losses() > all.Lost[tracer.LossPaused]+all.Lost[tracer.LossProbesMoved]+all.Lost[tracer.LossSideband]:
		missing = append(missing, fmt.Sprintf("no event was lost, but parts of events are missing or in doubt (%s)", lossList(&all)))
	}
	if n := all.Lost[tracer.LossSideband]; n > 0 {
		missing = append(missing, fmt.Sprintf("the kernel dropped %d records of mappings and names of threads (sideband lost %d): names may be missing, all calls are there", n, n))
	}
	if n := all.Lost[tracer.LossProbesMoved]; n > 0 {
		missing = append(missing, fmt.Sprintf("the probes were out of a process %s (probes moved %d): calls of that time are missing", times(n), n))
	}
	if all.Lost[tracer.LossPaused] > 0 {
		missing = append(missing, pauses(&all))
	}
	if all.LeftBehind {
		missing = append(missing, "a thread that is not the main one became another program, which is not traced")
	} else if all.MissesPrograms() {
		missing = append(missing, "the process became a program with another allocator or none, which is not traced")
	}
	if r.untraced > 0 && r.untraced < len(r.pids) {
		missing = append(missing, fmt.Sprintf("%d of %d processes could not be traced", r.untraced, len(r.pids)))
	}
	if r.following != nil {
		missing = append(missing, r.following.missing()...)
	}
	if len(missing) == 0 {
		return nil
	}
	return cli.Incompletef("%s", strings.Join(missing, "; "))
}

// failure returns what went wrong in the sessions. A second signal is told once.
func (r *recording) failure(errs []error) error {
	err := errors.Join(errs...)
	switch {
	case err == nil || !r.several():
		return err
	case errors.Is(err, errHurried):
		return errHurried
	case errors.Is(err, errRemovalHurried):
		return errRemovalHurried
	}
	return cli.ErrReported
}

// total prints the lines about all traces together.
func (r *recording) total(all *tracer.Stats) {
	what := "processes"
	if r.windows > 1 {
		what = "traces"
	}
	r.status.print("%d %s, %s", r.count, what, callCounts(all))
	if !r.config.noLive && r.windows == 1 { // blocks of one window are unknown to the next
		r.status.print("  live at the end: %d blocks, %s", all.LiveBlocks, size(all.LiveBytes))
		if all.UnknownBlocks > 0 {
			r.status.print("  %s", unknown(all))
		}
	}
	r.status.print("  lost: %d%s", all.LostEvents(), losses(all))
	if all.Lost[tracer.LossPaused] > 0 {
		r.status.print("  paused: %s", pauses(all))
	}
}

// concernsAll says that an error is not about one process.
func concernsAll(err error) bool {
	_, output := errors.AsType[*outputError](err)
	return output || errors.Is(err, tracer.ErrContainer) || errors.Is(err, tracer.ErrLockedDown) || errors.Is(err, tracer.ErrNotPrivileged)
}

// explain adds what the user can do about an error of the tracer.
func (x *session) explain(err error) error {
	switch {
	case errors.Is(err, tracer.ErrContainer):
		return cli.WithHint(err, "run it as root of the machine, outside of the container")
	case errors.Is(err, tracer.ErrLockedDown):
		return cli.WithHint(err, "a kernel is locked down at boot: by lockdown= on its command line, or by Secure Boot")
	case errors.Is(err, tracer.ErrNotPrivileged):
		again := fmt.Sprintf("-p %d", x.pid)
		if x.config.wait.on {
			again = "--wait --comm NAME"
		}
		if x.config.command != nil {
			again = "-- COMMAND, which runs the command as root, too"
		}
		return cli.WithHint(err, "run it as root: sudo "+name+" "+again)
	case errors.Is(err, tracer.ErrOpenFiles), errors.Is(err, unix.EMFILE):
		return cli.WithHint(err, "raise the limit: ulimit -n 1024, or LimitNOFILE=1024 of a systemd unit")
	case errors.Is(err, tracer.ErrEmulated):
		return cli.WithHint(err, "trace it on a machine of its own kind")
	case errors.Is(err, tracer.ErrStripped):
		return cli.WithHint(err, "install its debug file, or name its functions: --symbol malloc=ADDR --symbol free=ADDR and so on, addresses as nm prints them")
	case errors.Is(err, tracer.ErrGo):
		return cli.WithHint(err, "use Go's own profiler, pprof: import net/http/pprof in the program and serve it, then run go tool pprof http://HOST:PORT/debug/pprof/heap")
	case errors.Is(err, tracer.ErrNoAllocator):
		return cli.WithHint(err, "it must have a file with malloc and free in it, or functions with a prefix that --allocator prefix:P names")
	}
	return err
}

// lostUnderStrict is the error of the first loss.
func lostUnderStrict(n uint64, reason string) error {
	return fmt.Errorf("%d × %s: %w", n, printable.Name(reason), errStrict)
}
