package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// TicksPerSecond is the number of /proc's clock ticks in a second: USER_HZ, which is 100 on
// every machine that programs are traced on.
const TicksPerSecond = 100

// Started returns when the thread began, by the current setting of the wall clock. It is exact
// to a clock tick, and rather too early than too late.
func (s *Stat) Started() time.Time {
	var boot unix.Timespec
	now := time.Now()
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &boot) // cannot fail with these arguments
	return now.Add(time.Duration(s.Start)*(time.Second/TicksPerSecond) - time.Duration(boot.Nano()))
}
