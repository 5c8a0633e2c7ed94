package snapshot

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/atomicfile"
	"rtrace-bpf/internal/report/folded"
	"rtrace-bpf/internal/report/pprof"
	"rtrace-bpf/internal/topview"
)

// write writes a snapshot to its file, which has its name when it is complete.
func (f *Files) write(m *moment) error {
	path := f.path(m.number)
	if err := missing(path); err != nil {
		return err
	}
	to, err := atomicfile.CreatePrivate(path)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if err := f.encode(to, m); err != nil {
		return errors.Join(fmt.Errorf("snapshot: %w", err), to.Discard())
	}
	if err := to.Commit(); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

// everyRow is more rows than there can be.
const everyRow = math.MaxInt32

// encode writes a snapshot in its format.
func (f *Files) encode(w io.Writer, m *moment) error {
	f.model.Update(f.view.Of(m.Snapshot, f.elapsed(m)), m.last)
	if f.options.Format == "json" {
		f.view.NameRows(f.model, everyRow)
		return f.model.WriteJSON(w, everyRow)
	}
	p := f.view.Profile(m.State)
	if f.options.Format == "folded" {
		return f.writeFolded(w, p, m)
	}
	p.Name, p.Duration, p.Comments = m.Processes[0].Name, int64(f.elapsed(m)), f.comments(m)
	if f.wall != 0 {
		p.Start = f.clock.first + f.wall
	}
	return pprof.Write(w, p, stacks.InuseSpace)
}

// writeFolded writes the live bytes of a profile, after lines about what makes the figures
// uncertain. Readers pass over these, because they do not end in a number.
func (f *Files) writeFolded(w io.Writer, p *stacks.Profile, m *moment) error {
	for _, text := range f.doubts(m) {
		if _, err := fmt.Fprintf(w, "# %s\n", text); err != nil {
			return err
		}
	}
	return folded.Write(w, p, stacks.InuseSpace)
}

// comments returns what a profile has no place for: which snapshot it is, and what makes its
// figures uncertain.
func (f *Files) comments(m *moment) []string {
	text := fmt.Sprintf("snapshot %d of process %d, %.3f s after the beginning of the trace", m.number, f.pid, f.elapsed(m).Seconds())
	if m.last {
		text += ", the last one"
	}
	return append([]string{text}, f.doubts(m)...)
}

// doubts returns what makes the figures of a snapshot uncertain.
func (f *Files) doubts(m *moment) (all []string) {
	for _, reason := range slices.Sorted(maps.Keys(m.Lost)) {
		l := m.Lost[reason]
		switch {
		case l.Gap:
			all = append(all, fmt.Sprintf("%s: %d times, %.3f s in all, without events", reason, l.Count, float64(l.Missing)/1e9))
		default:
			all = append(all, fmt.Sprintf("lost: %d × %s", l.Count, reason))
		}
	}
	for i := range m.Resources {
		if r := &m.Resources[i]; r.Total.Unknown.Blocks > 0 {
			all = append(all, fmt.Sprintf("unknown: %d blocks of %s, %s", r.Total.Unknown.Blocks, r.Type, topview.Bytes(r.Total.Unknown.Bytes)))
		}
	}
	return append(all, f.model.Snapshot().Notes()...)
}
