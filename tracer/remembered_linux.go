package tracer

import (
	"sync"

	"github.com/cilium/ebpf/btf"
)

// cachedFeatures asks the kernel once for what takes long to find out.
type cachedFeatures struct {
	kernelFeatures
	multi func() error
	spec  func() (*btf.Spec, error)
}

// RememberFeatures returns what the kernel offers, for who makes many plans: Options
// that have it need not ask again.
func RememberFeatures() Features {
	return &cachedFeatures{
		multi: sync.OnceValue(kernelFeatures{}.UprobeMulti),
		spec:  sync.OnceValues(btf.LoadKernelSpec),
	}
}

// UprobeMulti probes this process to find out.
func (f *cachedFeatures) UprobeMulti() error { return f.multi() }
