package tracer

import (
	"sync"

	"github.com/cilium/ebpf/btf"
)

// rememberedFeatures asks the kernel once for what takes long to find out.
type rememberedFeatures struct {
	kernelFeatures
	multi func() error
	types func() (*btf.Spec, error)
}

// RememberedFeatures returns what the kernel offers, for who makes many plans: Options
// that have it need not ask again.
func RememberedFeatures() Features {
	return &rememberedFeatures{
		multi: sync.OnceValue(kernelFeatures{}.UprobeMulti),
		types: sync.OnceValues(btf.LoadKernelSpec),
	}
}

// UprobeMulti probes this process to find out.
func (f *rememberedFeatures) UprobeMulti() error { return f.multi() }
