package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/linux/machine"
)

// machineConfig is what swap has of the machine and of the process besides its calls.
type machineConfig struct {
	system time.Duration // between two states of the machine; 0 for none
	leaks  bool
}

// The shortest and the longest time between two states of the machine.
const (
	leastSystem = 10 * time.Millisecond
	mostSystem  = time.Second
)

func (m *machineConfig) declare(f *pflag.FlagSet) {
	f.Var((*flags.Duration)(&m.system), "swap-system", "tell the state of the machine in swap every `PERIOD`, 10ms to 1s: loads, memory, disks and network, those of the process and each of its threads (default: not at all)")
	f.BoolVar(&m.leaks, "swap-lsan", false, "write what was not freed by the end of the recording to a file beside the trace, with .leaks behind its name, and tell that in swap")
}

func (m *machineConfig) check(c *config) error {
	option := "--swap-system"
	if m.leaks {
		option = "--swap-lsan"
	}
	switch {
	case m.system == 0 && !m.leaks:
		return nil
	case c.format != "swap" || c.dotnet.on:
		return fmt.Errorf("%s goes with --format swap, and not with --dotnet: no other format has a place for it", option)
	case m.system != 0 && (m.system < leastSystem || m.system > mostSystem):
		return fmt.Errorf("--swap-system %v is not in %v to %v", m.system, leastSystem, mostSystem)
	case !m.leaks:
		return nil
	case c.toStdout():
		return errors.New("--swap-lsan writes a file beside the trace: name a directory or a file with -o")
	case c.noLive:
		return errors.New("--swap-lsan needs the live blocks, which --no-live does not follow: name one of them")
	case c.minSize > 0:
		return errors.New("--min-size leaves blocks out, so that --swap-lsan cannot say what was not freed: name one of them")
	case c.maxRate > 0:
		return errors.New("--max-rate loses frees, so that --swap-lsan cannot say what was not freed: name one of them")
	}
	return nil
}

// systemOf makes the message of a reading.
func systemOf(r *machine.Reading) *swap.System {
	t := &r.Target
	return &swap.System{
		Frequencies: append([]float32(nil), r.Frequencies...), Loads: append([]float32(nil), r.Loads...), MemoryUsed: r.MemoryUsed,
		Target: swap.SystemProcess{
			SystemLoad: swap.SystemLoad{ID: int32(t.ID), Percent: t.Percent},
			Virtual:    t.Virtual, Resident: t.Resident, Shared: t.Shared, PSS: t.PSS, Threads: loadsOf(t.Threads),
		},
		Others: loadsOf(r.Others),
		Figures: map[string]uint64{
			"total_used_drive_mb": r.DriveUsed >> 20,
			"disk_reads":          r.Disks.Reads, "disk_sectors_read": r.Disks.BytesRead,
			"disk_writes": r.Disks.Writes, "disk_sectors_written": r.Disks.BytesWritten,
			"network_send": r.Network.Sent, "network_receive": r.Network.Received,
			"brightness": r.Brightness, "voltage": r.Voltage,
		},
	}
}

func loadsOf(list []machine.Load) []swap.SystemLoad {
	out := make([]swap.SystemLoad, len(list))
	for i, l := range list {
		out[i] = swap.SystemLoad{ID: int32(l.ID), Percent: l.Percent}
	}
	return out
}
