package host

import (
	"sync"

	"github.com/cilium/ebpf/btf"
)

// CachedFeatures is a [Kernel] that keeps the results that take long to find out: whether
// uprobe_multi works, and the kernel's types.
type CachedFeatures struct {
	Kernel
	multi func() error
	Spec  func() (*btf.Spec, error) // returns the kernel's types; reads them at the first call
}

// RememberFeatures returns Features for callers that make many plans: the costly tests
// run once, at the first plan that needs them.
func RememberFeatures() Features {
	return &CachedFeatures{
		multi: sync.OnceValue(Kernel{}.UprobeMulti),
		Spec:  sync.OnceValues(btf.LoadKernelSpec),
	}
}

// UprobeMulti implements Features. The first call tests it with a probe in this process.
func (f *CachedFeatures) UprobeMulti() error { return f.multi() }
