package process

import (
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// killed is SIGKILL in proc.Status.Pending.
const killed = 1 << (unix.SIGKILL - 1)

// Carrier returns a thread of the process that perf events can be attached to: the
// main thread, or another one if that has ended, or 0 if all have. While the main
// thread is ending, or threads are being killed at the end of the process or by exec,
// that is not settled.
func (t *Target) Carrier() (tid int, settled bool) {
	leader, err := proc.ReadStatus(t.PID)
	if err != nil {
		return t.PID, true
	}
	stat, err := proc.ReadStat(t.PID)
	switch {
	case leader.State.Ended() && (err != nil || stat.Killed()):
		return 0, false
	case leader.State.Ended():
	case err == nil && stat.Exiting():
		return 0, false // the kernel tells the end of a thread before its state does
	default:
		return t.PID, true
	}
	for _, thread := range t.Threads() {
		s, err := proc.ReadStatus(thread.TID)
		if err != nil || s.State.Ended() {
			continue
		}
		if s.Pending&killed != 0 {
			return 0, false
		}
		// The signal may have been taken meanwhile: the kernel takes it from the
		// pending ones before it sets the flag.
		stat, err := proc.ReadStat(thread.TID)
		switch {
		case err != nil:
		case stat.Killed():
			return 0, false
		case tid == 0 && !stat.Exiting():
			tid = thread.TID
		}
	}
	return tid, true
}
