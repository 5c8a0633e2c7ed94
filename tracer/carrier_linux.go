package tracer

import (
	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/proc"
)

// killed is SIGKILL in proc.Status.Pending.
const killed = 1 << (unix.SIGKILL - 1)

// carrier returns a thread of the process that perf events can be attached to: the
// main thread, or another one if that has ended, or 0 if all have. While threads
// are being killed, at the end of the process or by exec, that is not settled.
func (t *target) carrier() (tid int, settled bool) {
	if s, err := proc.ReadStatus(t.pid); err != nil || !s.State.Ended() {
		return t.pid, true
	}
	if s, err := proc.ReadStat(t.pid); err != nil || s.Killed() {
		return 0, false
	}
	for _, thread := range t.threads() {
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
