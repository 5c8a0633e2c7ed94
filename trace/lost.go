package trace

// LostProbesMoved is the reason of another pause: the probes were out of the process,
// or may have been, from Lost.Since to Record.Time.
const LostProbesMoved = "probes moved"

// Gap reports whether nothing was recorded for a while, from Since to Record.Time:
// how many events are missing is not known then, and Count is how many gaps there were.
func (l *Lost) Gap() bool { return l.Reason == LostPaused || l.Reason == LostProbesMoved }

// HidesFrees reports whether frees, or reallocs, may be among what is missing. Of a
// reason that is not known they may.
func (l *Lost) HidesFrees() bool {
	switch l.Reason {
	case "stack failed", "late record", LostNames, "probed late":
		return false // of calls that are there, or of what is no call of an allocator
	}
	return true
}
