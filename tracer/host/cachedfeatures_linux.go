package host

import (
	"sync"

	"github.com/cilium/ebpf/btf"
)

// CachedFeatures asks the kernel once for what takes long to find out.
type CachedFeatures struct {
	Kernel
	multi func() error
	Spec  func() (*btf.Spec, error)
}

// RememberFeatures returns what the kernel offers, for who makes many plans: Options
// that have it need not ask again.
func RememberFeatures() Features {
	return &CachedFeatures{
		multi: sync.OnceValue(Kernel{}.UprobeMulti),
		Spec:  sync.OnceValues(btf.LoadKernelSpec),
	}
}

// UprobeMulti probes this process to find out.
func (f *CachedFeatures) UprobeMulti() error { return f.multi() }
