package trace

// LostProbesMoved is the reason of a gap in which the probes were, or may have been,
// out of the process: from Lost.Since to Record.Time.
const LostProbesMoved = "probes moved"

// Gap reports whether the loss is a gap: nothing was recorded from Since to
// Record.Time. Then Count is the number of gaps; the number of missing events is
// unknown.
func (l *Lost) Gap() bool { return l.Reason == LostPaused || l.Reason == LostProbesMoved }

// HidesFrees reports whether frees or reallocs may be among the missing events. It is
// true for an unknown reason.
func (l *Lost) HidesFrees() bool {
	switch l.Reason {
	case "stack failed", "late record", LostNames, "probed late":
		return false // the calls are in the trace, or what is missing is no call of an allocator
	}
	return true
}
