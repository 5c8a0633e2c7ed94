package plan

import (
	"fmt"

	"golang.org/x/sys/unix"

	"rtrace-bpf/tracer/host"
)

// RingBytes returns the bytes of each CPU's ring.
func (o *Options) RingBytes(cpus int) int {
	if o.RingSize != 0 {
		return o.RingSize
	}
	size, shares := defaultRingSize, max(o.Shares, 1)
	rings := 1
	if o.Activity.Any() {
		rings++ // activity has rings of the same size
	}
	if o.Calls() {
		rings++
	}
	shares *= rings
	for size > MinRingSize && size*cpus*shares > ringBudget {
		size /= 2
	}
	return size
}

// sidebandSize and sidebandLeast bound the bytes of a CPU's buffer for sideband records. Each
// tracer has its own buffers, which are smaller the more tracers run at the same time.
const (
	sidebandSize  = 256 << 10
	sidebandLeast = 32 << 10
)

// SidebandBytes returns the bytes of a CPU's buffer for sideband records.
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

// mostTaskEvents is the most perf events of all subscriptions to the sideband records of
// single threads.
const mostTaskEvents = 4096

// SubscriptionLimit returns how many perf events a subscription to the sideband records of
// single threads may have. Each event needs a file descriptor; all subscriptions together
// take at most a quarter of the limit of this process.
func (o *Options) SubscriptionLimit() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(mostTaskEvents, limit.Cur/4) / uint64(max(o.Shares, 1)))
}

// CheckShares returns an error if Shares tracers would need more memory for rings than all
// tracers together may have.
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
