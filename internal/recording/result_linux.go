package recording

import (
	"errors"
	"fmt"
	"strings"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/record"
)

// Result is the outcome of a recording.
type Result struct {
	Err      error // what went wrong in sessions
	Sessions int   // that have ended
	Windows  int
	Stats    record.Stats // sums of all sessions
	Missing  []string     // events of .NET runtimes, and snapshots, that are missing

	Selected   int // processes of the options
	Untraced   int // of these, that could not be traced
	TooMany    int // followed processes that ran untraced, because so many were traced
	Most       int // followed processes that are traced at the same time
	Unfollowed int // followed processes that could not be traced
}

// Result returns the outcome. It is for after Run or DryRun.
func (r *Recording) Result() *Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := &Result{
		Sessions: r.count, Windows: r.windows, Stats: r.sum, Selected: len(r.options.PIDs), Untraced: r.untraced,
	}
	var errs []error
	for _, e := range r.ends {
		errs = append(errs, e.err)
		out.Missing = append(out.Missing, e.missing...)
	}
	out.Err = r.failure(errs)
	if f := r.following; f != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		out.TooMany, out.Most, out.Unfollowed = len(f.above), f.most, f.untraced
	}
	return out
}

// failure returns what went wrong in sessions. With several, their errors were reported
// when they ended, except for a second signal, which concerns all.
func (r *Recording) failure(errs []error) error {
	err := errors.Join(errs...)
	switch {
	case err == nil || !r.several():
		return err
	case errors.Is(err, ErrHurried):
		return ErrHurried
	case errors.Is(err, errRemovalHurried):
		return errRemovalHurried
	}
	return cli.ErrReported
}

// Losses returns the kinds of losses with their counts, without pauses; empty for none.
func Losses(stats *record.Stats) string {
	var all []string
	for reason, n := range stats.Lost {
		if n > 0 && order.Loss(reason) != order.LossPaused {
			all = append(all, fmt.Sprintf("%s %d", order.Loss(reason), n))
		}
	}
	return strings.Join(all, ", ")
}
