package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/tracer/plan"
)

// bufferFlags select how events come from the kernel.
type bufferFlags struct {
	size flags.Size // of each CPU's buffer; 0 for the default
	kind string
}

var bufferKinds = map[string]plan.Buffer{"ring": plan.BufferRing, "perf": plan.BufferPerf}

func (b *bufferFlags) declare(f *pflag.FlagSet) {
	f.Var(&b.size, "ring-size", "buffer `BYTES` of events for each CPU and process; a power of two (default 8M, less with many CPUs or processes)")
	f.Var(flags.Word(&b.kind, "ring", "ring", "perf"), "buffer", "transfer events with buffers of this `KIND`: ring (BPF ring buffers) or perf (perf event buffers)")
}

// check returns an error if the size of the buffers is not possible.
func (b *bufferFlags) check(*config) error {
	if b.size != 0 && (b.size < plan.MinRingSize || b.size > plan.MaxRingSize || b.size&(b.size-1) != 0) {
		least, most := flags.Size(plan.MinRingSize), flags.Size(plan.MaxRingSize)
		return fmt.Errorf("--ring-size %s: not a power of two from %s to %s; write one as 8M", b.size.Text(), least.Text(), most.Text())
	}
	return nil
}

// set sets the options of buffers.
func (b *bufferFlags) set(o *plan.Options) error {
	o.RingSize, o.Buffer = int(b.size), bufferKinds[b.kind]
	return nil
}
