package plan

import (
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"

	"rtrace-bpf/tracer/host"
)

// Preparation is what takes long of what programs need to be loaded, and does not depend
// on what is probed: it is made while the process is looked at.
type Preparation struct {
	Types  func() (*btf.Spec, error)            // of the kernel
	Object func() (*ebpf.CollectionSpec, error) // the programs, for one who changes them
}

// prepareTypes begins to read the types of the kernel.
func (p *Preparation) prepareTypes(f host.Features) {
	if r, ok := f.(*host.CachedFeatures); ok {
		p.Types = r.Spec
		return
	}
	p.Types = ahead(btf.LoadKernelSpec)
}

// prepareObject begins to read the programs.
func (p *Preparation) prepareObject(f host.Features, read func() (*ebpf.CollectionSpec, error)) {
	if _, ok := f.(*host.CachedFeatures); ok {
		p.Object = read // many plans are made, and not all of them are opened
		return
	}
	p.Object = ahead(read)
}

// ahead begins to make something before it is needed, and returns what waits for it.
func ahead[T any](produce func() (T, error)) func() (T, error) {
	made := sync.OnceValues(produce)
	go func() { _, _ = made() }() // who waits gets the error
	return made
}
