package mapofmaps

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cilium/ebpf"
)

// Map is a map whose values are maps. A change of it is there at once, but
// the kernel lets the one who made it wait until no program can use the former
// map any more, some ten milliseconds. Here nobody has to, so goroutines do.
// The methods but Close may be called by several goroutines.
type Map struct {
	*ebpf.Map
	waiting sync.WaitGroup
	few     chan struct{} // holds one element for each that waits

	mu   sync.Mutex
	held map[uint32]*ebpf.Map // what is in the slots
}

// maxWaiting is how many changes wait at a time, each with a thread of its own.
const maxWaiting = 16

// lookAgain is how often a change is looked for that has just been made.
const lookAgain = 50 * time.Microsecond

// New returns the map of maps m, which stays the caller's to close after Close.
func New(m *ebpf.Map) *Map {
	return &Map{Map: m, few: make(chan struct{}, maxWaiting), held: map[uint32]*ebpf.Map{}}
}

// Install puts maps into slots and returns when programs find them there. It
// takes the maps over. Those that were there before are closed once the kernel
// has waited for the programs: until Linux 6.8 the last one to let go of an inner
// map freed it at once ("bpf: Defer the free of inner map when necessary").
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

// exchange notes what the slots will have and returns what they had.
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

// giveUp forgets maps that could not be installed, and returns them.
func (o *Map) giveUp(maps map[uint32]*ebpf.Map) map[uint32]*ebpf.Map {
	o.mu.Lock()
	defer o.mu.Unlock()
	for slot := range maps {
		delete(o.held, slot)
	}
	return maps
}

// has says whether the slots have the maps of these ids.
func (o *Map) has(ids map[uint32]ebpf.MapID) bool {
	for slot, want := range ids {
		var id uint32
		if o.Lookup(slot, &id) != nil || ebpf.MapID(id) != want {
			return false
		}
	}
	return true
}

// Update changes all slots and waits for the kernel, once if it can.
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

// Remove empties a slot, and calls empty when that has happened, from another
// goroutine.
func (o *Map) Remove(slot uint32, empty func(slot uint32)) {
	o.waiting.Go(func() {
		o.few <- struct{}{}
		defer func() { <-o.few }()
		o.mu.Lock()
		m := o.held[slot]
		delete(o.held, slot)
		o.mu.Unlock()
		// It fails if there was nothing, which is as good.
		_ = o.Delete(slot)
		if m != nil {
			_ = m.Close()
		}
		empty(slot)
	})
}

// Close waits for all changes to be over and lets go of what is in the slots. The
// map itself belongs to the programs.
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
