package tracer

import (
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// preparation is what takes long of what programs need to be loaded, and does not depend
// on what is probed: it is made while the process is looked at.
type preparation struct {
	types  func() (*btf.Spec, error)            // of the kernel
	object func() (*ebpf.CollectionSpec, error) // the programs, for one who changes them
}

// prepareTypes begins to read the types of the kernel.
func (p *preparation) prepareTypes(f Features) {
	if r, ok := f.(*cachedFeatures); ok {
		p.types = r.spec
		return
	}
	p.types = ahead(btf.LoadKernelSpec)
}

// prepareObject begins to read the programs.
func (p *preparation) prepareObject(f Features, read func() (*ebpf.CollectionSpec, error)) {
	if _, ok := f.(*cachedFeatures); ok {
		p.object = read // many plans are made, and not all of them are opened
		return
	}
	p.object = ahead(read)
}

// ahead begins to make something before it is needed, and returns what waits for it.
func ahead[T any](produce func() (T, error)) func() (T, error) {
	made := sync.OnceValues(produce)
	go func() { _, _ = made() }() // who waits gets the error
	return made
}
