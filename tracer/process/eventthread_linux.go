package process

import (
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// killed is the bit of SIGKILL in proc.Status.Pending.
const killed = 1 << (unix.SIGKILL - 1)

// Carrier returns a thread that perf events can be attached to: the main thread, or another
// one if the main thread has ended, or 0 if all have ended. settled is false while the main
// thread is ending, or while threads are being killed, by exec or at the end of the process:
// then ask again.
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
		return 0, false // the thread is ending, but its state does not show that yet
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
		// SIGKILL may have been delivered since Pending was read: the kernel removes it
		// from the pending signals before it sets the flag that Killed reports.
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
