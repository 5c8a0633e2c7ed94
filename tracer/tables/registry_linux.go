package tables

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"

	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// Registry is what the programs are told of a process. Its methods may be
// called by several goroutines.
type Registry struct {
	PID     uint32
	Targets *ebpf.Map    // by process id
	Renew   func() error // makes the programs look anew

	mu      sync.Mutex
	Process object.ProbeProcess
	there   bool // the programs have been told
}

// Relocate says where the allocator with the given number has its code.
func (r *Registry) Relocate(number int, code process.Extent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refresh(); err != nil {
		return err
	}
	r.Process.Texts[number].Start, r.Process.Texts[number].End = code.Start, code.End
	return r.Put()
}

// Remap says that the process's space has been installed anew, and is of an epoch now.
func (r *Registry) Remap(epoch uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refresh(); err != nil {
		return err
	}
	r.Process.Target.Epoch = epoch
	return r.Put()
}

// refresh takes over where the programs have found code to be, after an exec that
// the tracer has not seen yet (place_text in bpf/nested.h): what it knew of that is
// older and must not take its place.
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

// Put writes the entry of the process.
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
