package topview

import (
	"fmt"
	"strings"

	"rtrace-bpf/internal/printable"
)

// title returns the line that names the processes.
func (s *Snapshot) title() string {
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

// tracing returns the line about what tracing costs, and what is missing. Losses come first.
func (s *Snapshot) tracing() string {
	var lost, pauses uint64
	var share, factor float64
	about := ""
	var losses []string
	for i := range s.Processes {
		p := &s.Processes[i]
		lost += p.Lost
		pauses += p.Pauses
		if p.Losses != "" {
			losses = append(losses, p.Losses)
		}
		if p.AtLeast {
			about = "over " // with losses and pauses, the line fits 80 columns
		}
		share, factor = max(share, p.Share), max(factor, p.Factor)
	}
	costs := "tracing costs not known yet"
	if factor != 0 {
		costs = fmt.Sprintf("tracing costs %.1f %% of its CPU time (%s%.2f times slower)", 100*share, about, factor)
	}
	missing := fmt.Sprintf("lost %d  paused %d", lost, pauses)
	if len(losses) > 0 { // a narrow terminal cuts the end of the line
		return missing + " (" + strings.Join(losses, ", ") + ")  " + costs
	}
	return costs + "  " + missing
}

// Notes returns lines about what makes the figures uncertain, without counts of events that were
// lost.
func (s *Snapshot) Notes() (lines []string) {
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
