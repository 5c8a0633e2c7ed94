package tables

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"

	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// Registry writes what the programs know of a process. Its methods are safe for
// concurrent use.
type Registry struct {
	PID     uint32
	Targets *ebpf.Map    // by process id
	Renew   func() error // has the programs read the entry again

	mu      sync.Mutex
	Process object.ProbeProcess
	there   bool // the programs have an entry
}

// Relocate records the address range of the code of an allocator, given its number.
func (r *Registry) Relocate(number int, code process.Extent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refresh(); err != nil {
		return err
	}
	r.Process.Texts[number].Start, r.Process.Texts[number].End = code.Start, code.End
	return r.Put()
}

// Remap gives the process a new epoch after its Space was installed again.
func (r *Registry) Remap(epoch uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refresh(); err != nil {
		return err
	}
	r.Process.Target.Epoch = epoch
	return r.Put()
}

// refresh reads the code ranges back from the programs. After an exec that the tracer has
// not seen yet, the programs may have found the code elsewhere (place_text in
// bpf/nested.h), and older ranges must not replace theirs.
func (r *Registry) refresh() error {
	if !r.there {
		return nil
	}
	var now object.ProbeProcess
	if err := r.Targets.Lookup(r.PID, &now); err != nil {
		return fmt.Errorf("look process %d up: %w", r.PID, err)
	}
	r.Process.Texts = now.Texts
	return nil
}

// Put writes the entry of the process and has the programs read it.
func (r *Registry) Put() error {
	if err := r.Targets.Put(r.PID, r.Process); err != nil {
		return fmt.Errorf("register process %d: %w", r.PID, err)
	}
	r.there = true
	if err := r.Renew(); err != nil {
		return fmt.Errorf("register process %d: %w", r.PID, err)
	}
	return nil
}
