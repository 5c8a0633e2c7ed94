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

	mu     sync.Mutex
	target probeTarget
}

// relocate says where the allocator has its code.
func (r *registry) relocate(code extent) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target.TextStart, r.target.TextEnd = code.start, code.end
	return r.put()
}

// remap says that the process's space has been installed anew.
func (r *registry) remap(code []placed, epoch uint64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.target.Mappings, r.target.Epoch = uint32(len(code)), epoch
	return r.put()
}

func (r *registry) put() error {
	if err := r.targets.Put(r.pid, r.target); err != nil {
		return fmt.Errorf("register process %d: %w", r.pid, err)
	}
	if err := r.renew(); err != nil {
		return fmt.Errorf("register process %d: %w", r.pid, err)
	}
	return nil
}
