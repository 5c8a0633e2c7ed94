package tracer

import "fmt"

// sidebandSize and sidebandLeast bound the buffer per CPU for the kernel's
// records of mappings, names, forks and exits of all processes, in bytes. Tracers
// that work at the same time each have one, smaller ones the more they are.
const (
	sidebandSize  = 256 << 10
	sidebandLeast = 32 << 10
)

// sidebandBytes returns the size of one of these buffers.
func (o *Options) sidebandBytes() int {
	size := sidebandSize
	for size > sidebandLeast && size*o.Shares > sidebandSize {
		size /= 2
	}
	return size
}

// CheckShares says that so many tracers at the same time would need more memory
// for rings than they may have together.
func (o *Options) CheckShares() error {
	cpus, err := onlineCPUs()
	if err != nil {
		return err
	}
	return o.checkShares(len(cpus))
}

func (o *Options) checkShares(cpus int) error {
	if o.RingSize != 0 || o.Shares <= 1 || o.ringBytes(cpus)*cpus*o.Shares <= ringBudget {
		return nil
	}
	return fmt.Errorf("%d processes cannot be traced at the same time: on %d CPUs their buffers would take more than %d MiB even with %d KiB each",
		o.Shares, cpus, ringBudget>>20, MinRingSize>>10)
}
