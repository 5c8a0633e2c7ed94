package plan

import (
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/host"
)

// sidebandSize and sidebandLeast bound the buffer per CPU for the kernel's
// records of mappings, names, forks and exits, in bytes. Tracers
// that work at the same time each have one, smaller ones the more they are.
const (
	sidebandSize  = 256 << 10
	sidebandLeast = 32 << 10
)

// SidebandBytes returns the size of one of these buffers.
func (o *Options) SidebandBytes() int {
	if o.Testing.sidebandSize != 0 {
		return o.Testing.sidebandSize
	}
	size := sidebandSize
	for size > sidebandLeast && size*o.Shares > sidebandSize {
		size /= 2
	}
	return size
}

// mostTaskEvents bounds the perf events of subscriptions to single threads: each has a
// file descriptor.
const mostTaskEvents = 4096

// SubscriptionLimit returns how many perf events a subscription to the records of
// single threads may have: a quarter of this process's descriptors at most, since each
// has one.
func (o *Options) SubscriptionLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(mostTaskEvents, limit.Cur/4) / uint64(max(o.Shares, 1)))
}

// CheckShares says that so many tracers at the same time would need more memory
// for rings than they may have together.
func (o *Options) CheckShares() error {
	cpus, err := host.OnlineCPUs()
	if err != nil {
		return err
	}
	return o.checkShares(len(cpus))
}

func (o *Options) checkShares(cpus int) error {
	if o.RingSize != 0 || o.Shares <= 1 || o.RingBytes(cpus)*cpus*o.Shares <= ringBudget {
		return nil
	}
	return fmt.Errorf("%d processes cannot be traced at the same time: on %d CPUs their buffers would take more than %d MiB even with %d KiB each",
		o.Shares, cpus, ringBudget>>20, MinRingSize>>10)
}
