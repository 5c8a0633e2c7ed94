package topview

import (
	"fmt"
	"strings"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/printable"
)

// header returns the lines about the processes: what they are, their memory, and what
// touches the figures.
func (m *Model) header() []string {
	s := m.now
	lines := []string{title(s), m.memory()}
	lines = append(lines, tracing(s))
	return append(lines, m.Notes()...)
}

// title returns the line that names the processes.
func title(s *Snapshot) string {
	var names []string
	for i := range s.Processes {
		p := &s.Processes[i]
		text := fmt.Sprintf("%d (%s)", p.PID, printable.Name(p.Name))
		if p.Ended {
			text += ", ended"
		}
		names = append(names, text)
	}
	word := "process"
	if len(names) != 1 {
		word = fmt.Sprintf("%d processes:", len(names))
	}
	return fmt.Sprintf("%s %s, traced for %s", word, strings.Join(names, ", "), clock(s.Elapsed))
}

// memory returns the line about memory and calls.
func (m *Model) memory() string {
	s := m.now
	var rss uint64
	for i := range s.Processes {
		rss += s.Processes[i].RSS
	}
	text := ""
	if rss > 0 {
		text = "RSS " + Bytes(rss) + "  "
	}
	var all Totals
	for i := range s.Resources {
		if r := &s.Resources[i]; r.Type == aggregate.Memory {
			all.Live, all.Unknown = r.Total.Live, r.Total.Unknown
		}
	}
	for k, a := range m.history.allocated {
		if interval := m.history.interval().Seconds(); k.kind == BySite && interval > 0 {
			all.Rate += float64(a.Bytes) / interval
			all.Calls += float64(a.Blocks) / interval
		}
	}
	return text + fmt.Sprintf("live %s in %s blocks  allocates %s/s in %s calls/s", Bytes(all.Live.Bytes), Count(float64(all.Live.Blocks)), bytesOf(all.Rate), Count(all.Calls))
}

// tracing returns the line about what tracing costs, and what is missing. Losses come first.
func tracing(s *Snapshot) string {
	var lost, pauses uint64
	var share, factor float64
	var losses []string
	for i := range s.Processes {
		p := &s.Processes[i]
		lost += p.Lost
		pauses += p.Pauses
		if p.Losses != "" {
			losses = append(losses, p.Losses)
		}
		share, factor = max(share, p.Share), max(factor, p.Factor)
	}
	costs := "tracing costs not known yet"
	if factor != 0 {
		costs = fmt.Sprintf("tracing costs %.1f %% of its CPU time (%.2f times slower)", 100*share, factor)
	}
	missing := fmt.Sprintf("lost %d  paused %d", lost, pauses)
	if len(losses) > 0 { // a narrow terminal cuts the end of the line
		return missing + " (" + strings.Join(losses, ", ") + ")  " + costs
	}
	return costs + "  " + missing
}

// Notes returns lines about what makes the figures of the last snapshot uncertain, without
// counts of events that were lost.
func (m *Model) Notes() (lines []string) {
	s := m.now
	for i := range s.Processes {
		if p := &s.Processes[i]; p.Execs > 0 {
			lines = append(lines, fmt.Sprintf("process %d executed another program: the blocks of the one before are gone", p.PID))
		}
	}
	var unknown uint64
	for i := range s.Resources {
		unknown += s.Resources[i].Total.Unknown.Blocks
	}
	if unknown > 0 {
		lines = append(lines, fmt.Sprintf("%d blocks may have been freed in a pause, and do not count as live", unknown))
	}
	if s.Lost.HiddenFrees() > 0 {
		lines = append(lines, "events were lost: a block whose free is among them counts as live")
	}
	if s.Growth != nil && s.Growth.Elsewhere {
		lines = append(lines, printable.Name(s.Growth.Verdict))
	}
	return lines
}
