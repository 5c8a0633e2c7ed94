package mapofmaps

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
)

// Map is a BPF map whose values are maps. Programs see a change of it at once, but the
// system call returns only when no program can still use the former map, after some ten
// milliseconds. Map makes these calls in goroutines, so that its callers need not wait.
// All methods except Close may be called by several goroutines.
type Map struct {
	*ebpf.Map
	waiting sync.WaitGroup
	few     chan struct{} // holds an element for each single change that waits for the kernel

	mu   sync.Mutex
	held map[uint32]*ebpf.Map // the maps in the slots, which Map closes
}

// maxWaiting is the most single changes that wait for the kernel at a time, each in a
// thread of its own.
const maxWaiting = 16

// lookAgain is the interval at which Install looks whether its change is there.
const lookAgain = 50 * time.Microsecond

// New returns a Map that changes m. The caller closes m, after Close.
func New(m *ebpf.Map) *Map {
	return &Map{Map: m, few: make(chan struct{}, maxWaiting), held: map[uint32]*ebpf.Map{}}
}

// Install puts maps into slots, by slot, and returns when programs find them there. It
// owns the maps from then on, also after an error. The maps that were there before are
// closed once the kernel has waited for the programs: until Linux 6.8 an inner map was
// freed at once when its last reference went away ("bpf: Defer the free of inner map when
// necessary").
func (o *Map) Install(maps map[uint32]*ebpf.Map) error {
	if len(maps) == 0 {
		return nil
	}
	slots, fds, ids := []uint32{}, []uint32{}, map[uint32]ebpf.MapID{}
	for slot, m := range maps {
		info, err := m.Info()
		if err != nil {
			return errors.Join(fmt.Errorf("look at inner map: %w", err), closeMaps(maps))
		}
		id, ok := info.ID()
		if !ok {
			return errors.Join(errors.New("inner map has no id"), closeMaps(maps))
		}
		slots, fds, ids[slot] = append(slots, slot), append(fds, uint32(m.FD())), id
	}
	done := make(chan error, 1)
	before := o.exchange(maps)
	o.waiting.Go(func() {
		err := o.Update(slots, fds)
		if err != nil {
			err = errors.Join(err, closeMaps(o.giveUp(maps)))
		}
		done <- errors.Join(err, closeMaps(before))
	})
	again := time.NewTicker(lookAgain)
	defer again.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-again.C:
			if o.has(ids) {
				return nil
			}
		}
	}
}

// exchange records the new maps of the slots and returns the former ones.
func (o *Map) exchange(maps map[uint32]*ebpf.Map) map[uint32]*ebpf.Map {
	o.mu.Lock()
	defer o.mu.Unlock()
	before := map[uint32]*ebpf.Map{}
	for slot, m := range maps {
		if old := o.held[slot]; old != nil {
			before[slot] = old
		}
		o.held[slot] = m
	}
	return before
}

// giveUp removes maps that could not be installed from the record, and returns them.
func (o *Map) giveUp(maps map[uint32]*ebpf.Map) map[uint32]*ebpf.Map {
	o.mu.Lock()
	defer o.mu.Unlock()
	for slot := range maps {
		delete(o.held, slot)
	}
	return maps
}

// has reports whether the slots have the maps with these IDs.
func (o *Map) has(ids map[uint32]ebpf.MapID) bool {
	for slot, want := range ids {
		var id uint32
		if o.Lookup(slot, &id) != nil || ebpf.MapID(id) != want {
			return false
		}
	}
	return true
}

// Update puts maps, by their descriptors, into slots and waits for the kernel: once for all
// if the kernel can change several slots in one call.
func (o *Map) Update(slots, fds []uint32) error {
	if n, err := o.BatchUpdate(slots, fds, nil); err == nil && n == len(slots) {
		return nil
	}
	errs := make([]error, len(slots))
	var puts sync.WaitGroup
	for i := range slots {
		o.few <- struct{}{}
		puts.Go(func() {
			errs[i] = o.Put(slots[i], fds[i])
			<-o.few
		})
	}
	puts.Wait()
	return errors.Join(errs...)
}

// Remove empties a slot and closes its map. It returns at once, and calls empty from
// another goroutine when that is done.
func (o *Map) Remove(slot uint32, empty func(slot uint32)) {
	o.waiting.Go(func() {
		o.few <- struct{}{}
		defer func() { <-o.few }()
		o.mu.Lock()
		m := o.held[slot]
		delete(o.held, slot)
		o.mu.Unlock()
		// It fails if the slot was empty already.
		_ = o.Delete(slot)
		if m != nil {
			_ = m.Close()
		}
		empty(slot)
	})
}

// Close waits until all changes are done, and closes the maps in the slots. It does not
// close the map of maps.
func (o *Map) Close() error {
	o.waiting.Wait()
	err := closeMaps(o.held)
	clear(o.held)
	return err
}

func closeMaps(maps map[uint32]*ebpf.Map) error {
	var all []error
	for _, m := range maps {
		all = append(all, m.Close())
	}
	return errors.Join(all...)
}
