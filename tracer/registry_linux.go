package tracer

import (
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
)

// registry is what the programs are told of a process. Its methods may be
// called by several goroutines.
type registry struct {
	pid     uint32
	targets *ebpf.Map    // by process id
	renew   func() error // makes the programs look anew

	mu      sync.Mutex
	process probeProcess
	there   bool // the programs have been told
}

// relocate says where the allocator with the given number has its code.
func (r *registry) relocate(number int, code extent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refresh(); err != nil {
		return err
	}
	r.process.Texts[number].Start, r.process.Texts[number].End = code.start, code.end
	return r.put()
}

// remap says that the process's space has been installed anew, and is of an epoch now.
func (r *registry) remap(epoch uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.refresh(); err != nil {
		return err
	}
	r.process.Target.Epoch = epoch
	return r.put()
}

// refresh takes over where the programs have found code to be, after an exec that
// the tracer has not seen yet (place_text in bpf/nested.h): what it knew of that is
// older and must not take its place.
func (r *registry) refresh() error {
	if !r.there {
		return nil
	}
	var now probeProcess
	if err := r.targets.Lookup(r.pid, &now); err != nil {
		return fmt.Errorf("look process %d up: %w", r.pid, err)
	}
	r.process.Texts = now.Texts
	return nil
}

// put writes the entry of the process.
func (r *registry) put() error {
	if err := r.targets.Put(r.pid, r.process); err != nil {
		return fmt.Errorf("register process %d: %w", r.pid, err)
	}
	r.there = true
	if err := r.renew(); err != nil {
		return fmt.Errorf("register process %d: %w", r.pid, err)
	}
	return nil
}
