package plan

import (
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"rtrace-bpf/tracer/host"
)

// Preparation holds what loading the BPF programs needs, takes long to read, and does not
// depend on what is probed. It is read in the background while the plan is made. The
// functions wait for the result.
type Preparation struct {
	Types  func() (*btf.Spec, error)            // returns the types of the kernel
	Object func() (*ebpf.CollectionSpec, error) // returns the programs; the caller may change them
}

// prepareTypes begins to read the types of the kernel, or takes them from cached features.
func (p *Preparation) prepareTypes(f host.Features) {
	if r, ok := f.(*host.CachedFeatures); ok {
		p.Types = r.Spec
		return
	}
	p.Types = ahead(btf.LoadKernelSpec)
}

// prepareObject begins to read the programs. With cached features it leaves that to the call
// of p.Object.
func (p *Preparation) prepareObject(f host.Features, read func() (*ebpf.CollectionSpec, error)) {
	if _, ok := f.(*host.CachedFeatures); ok {
		p.Object = read // of many plans, not all are opened
		return
	}
	p.Object = ahead(read)
}

// ahead calls produce in another goroutine, and returns a function that waits for its
// result.
func ahead[T any](produce func() (T, error)) func() (T, error) {
	made := sync.OnceValues(produce)
	go func() { _, _ = made() }() // the caller of made gets the error
	return made
}
