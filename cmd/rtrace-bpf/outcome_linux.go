package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/printable"
	"rtrace-bpf/internal/recording"
	"rtrace-bpf/internal/recording/memory"
	"rtrace-bpf/internal/recording/output"
	"rtrace-bpf/internal/recording/snapshot"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/record"
)

// outcome prints the summary of all sessions, and returns the error for the exit status: the
// failures if there are any, else what is missing.
func (r *reporter) outcome(result *recording.Result) error {
	if result.Sessions > 1 && !r.config.general.quiet {
		r.total(result)
	}
	if result.Err != nil {
		return result.Err
	}
	missing := append(result.Missing, missingEvents(&result.Stats)...)
	if result.Untraced > 0 && result.Untraced < result.Selected {
		missing = append(missing, fmt.Sprintf("%d of %d processes could not be traced", result.Untraced, result.Selected))
	}
	if result.TooMany > 0 {
		missing = append(missing, fmt.Sprintf("%d processes ran untraced, because %d were traced already", result.TooMany, result.Most))
	}
	if result.Unfollowed > 0 {
		missing = append(missing, fmt.Sprintf("%d followed processes could not be traced", result.Unfollowed))
	}
	if len(missing) == 0 {
		return nil
	}
	return cli.Incompletef("%s", strings.Join(missing, "; "))
}

// missingEvents returns which events are missing, and why.
func missingEvents(all *record.Stats) (missing []string) {
	switch {
	case all.LostEvents() > 0:
		missing = append(missing, fmt.Sprintf("%d events were lost (%s)", all.LostEvents(), recording.Losses(all)))
	case all.Losses() > all.Lost[order.LossPaused]+all.Lost[order.LossProbesMoved]+all.Lost[order.LossSideband]:
		missing = append(missing, fmt.Sprintf("no event was lost, but parts of events are missing or in doubt (%s)", recording.Losses(all)))
	}
	if n := all.Lost[order.LossSideband]; n > 0 {
		missing = append(missing, fmt.Sprintf("the kernel dropped %d records of mappings and names of threads (sideband lost %d): names may be missing, all calls are there", n, n))
	}
	if n := all.Lost[order.LossProbesMoved]; n > 0 {
		missing = append(missing, fmt.Sprintf("a process had no probes %s (probes moved %d): calls of that time are missing", status.Times(n), n))
	}
	if all.Lost[order.LossPaused] > 0 {
		missing = append(missing, pauses(all))
	}
	if all.LeftBehind {
		missing = append(missing, "a thread other than the main one executed another program, which is not traced")
	} else if all.MissesPrograms() {
		missing = append(missing, "the process executed a program with another allocator or none, which is not traced")
	}
	return missing
}

// total prints the sums of all traces.
func (r *reporter) total(result *recording.Result) {
	all := &result.Stats
	what := "processes"
	if result.Windows > 1 {
		what = "traces"
	}
	r.line.Note("%d %s, %s", result.Sessions, what, callCounts(all))
	if !r.config.allocators.noLive && r.config.limits.budget == 0 && result.Windows == 1 { // a window does not know the blocks of the one before
		r.line.Note("  live at the end: %d blocks, %s", all.LiveBlocks, status.Bytes(all.LiveBytes))
		if all.UnknownBlocks > 0 {
			r.line.Note("  %s", unknown(all))
		}
	}
	r.line.Note("  lost: %d%s", all.LostEvents(), losses(all))
	if all.Lost[order.LossPaused] > 0 {
		r.line.Note("  paused: %s", pauses(all))
	}
}

// pauses returns the text about how often and how long --max-rate paused the recording.
func pauses(stats *record.Stats) string {
	return fmt.Sprintf("the recording was paused %s, %s in all, for --max-rate", status.Times(stats.Lost[order.LossPaused]), printable.Text(stats.Paused.Round(time.Millisecond).String()))
}

// explain adds a hint to an error, if there is one.
func (r *reporter) explain(err error) error {
	if e, ok := errors.AsType[*output.NoDirectoryError](err); ok {
		return explainDirectory(e)
	}
	if hint := r.hint(err); hint != "" {
		return cli.WithHint(err, hint)
	}
	return err
}

// explainDirectory names the flag that needs a directory for its files.
func explainDirectory(e *output.NoDirectoryError) error {
	const text = "%s writes files to the directory of the trace, and %s is not a regular file: name a file or a directory with -o"
	switch e.Files {
	case output.Attachments:
		return cli.Usagef(text, "--attach", e.Path)
	case memory.PageFlags:
		return cli.Usagef(text, "--pagemap", e.Path)
	case snapshot.Name:
		return cli.Usagef(text, "--snapshot", e.Path)
	}
	return fmt.Errorf(text, "--swap-lsan", e.Path)
}

// hint returns what the user can do about an error, or an empty string.
func (r *reporter) hint(err error) string {
	_, pages := errors.AsType[*memory.PagesError](err)
	switch {
	case err == nil:
		return ""
	case pages:
		return "--pagemap needs root, or CAP_SYS_ADMIN and the right to read /proc/kpageflags"
	case errors.Is(err, recording.ErrLost):
		return "leave --strict out, or make losses rarer with a larger --ring-size"
	case errors.Is(err, order.ErrLargeBuffer):
		return "choose smaller buffers with --ring-size"
	case errors.Is(err, host.ErrContainer):
		return "run it as root of the machine, outside of the container"
	case errors.Is(err, host.ErrLockedDown):
		return "a kernel is locked down at boot: by lockdown= on its command line, or by Secure Boot"
	case errors.Is(err, host.ErrNotPrivileged):
		return "run it as root: sudo " + strings.Join(append(strings.Fields(name+" "+r.verb), r.again()), " ")
	case errors.Is(err, host.ErrOpenFiles), errors.Is(err, unix.EMFILE):
		return "raise the limit: ulimit -n 1024, or LimitNOFILE=1024 of a systemd unit"
	case errors.Is(err, host.ErrEmulated):
		return "trace it on a machine of its own kind"
	case errors.Is(err, host.ErrStripped):
		return "install its debug file, or name its functions: --symbol malloc=ADDR --symbol free=ADDR and so on, addresses as nm prints them"
	case errors.Is(err, host.ErrGo):
		return "use Go's own profiler, pprof: import net/http/pprof in the program and serve it, then run go tool pprof http://HOST:PORT/debug/pprof/heap"
	case errors.Is(err, host.ErrNoAllocator):
		return "it must have a file with malloc and free in it, or functions with a prefix that --allocator prefix:P names"
	}
	return ""
}

// again returns the arguments of the same command line, in short.
func (r *reporter) again() string {
	switch {
	case r.config.command != nil:
		return "-- COMMAND, which runs the command as root, too"
	case r.config.target.wait:
		return "--wait --comm NAME"
	}
	return fmt.Sprintf("-p %d", r.pids[0])
}
