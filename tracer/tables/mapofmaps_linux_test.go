package tables

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/cilium/ebpf"

	"rtrace-bpf/tracer/mapofmaps"
)

// someOuter returns an outer map with the given number of slots, and a function that
// makes maps for it.
func someOuter(t *testing.T, slots uint32) (*mapofmaps.Map, func() *ebpf.Map) {
	t.Helper()
	w := newWorld(t, func(maps map[string]*ebpf.MapSpec) { maps["tables"].MaxEntries = slots })
	return w.tables.outer, func() *ebpf.Map {
		m, err := ebpf.NewMap(w.tables.inner)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// number returns the kernel's ID of a map.
func number(t *testing.T, m *ebpf.Map) ebpf.MapID {
	t.Helper()
	info, err := m.Info()
	if err != nil {
		t.Fatal(err)
	}
	id, ok := info.ID()
	if !ok {
		t.Fatal("the kernel reports no map IDs")
	}
	return id
}

// held returns the ID of the map in a slot, 0 for none.
func held(o *mapofmaps.Map, slot uint32) ebpf.MapID {
	var id uint32
	if o.Lookup(slot, &id) != nil {
		return 0
	}
	return ebpf.MapID(id)
}

// When Install returns, all the maps are installed, however many there are.
func TestOuterInstallsAll(t *testing.T) {
	o, newInner := someOuter(t, 64)
	for round := range 5 {
		maps, want := map[uint32]*ebpf.Map{}, map[uint32]ebpf.MapID{}
		for slot := range uint32(50) {
			maps[slot] = newInner()
			want[slot] = number(t, maps[slot])
		}
		if err := o.Install(maps); err != nil {
			t.Fatal(err)
		}
		for slot, id := range want {
			if got := held(o, slot); got != id {
				t.Errorf("round %d, slot %d: map %d, want %d", round, slot, got, id)
			}
		}
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

// After several changes of one slot the last one is in effect, also once all pending work
// is done. Only the outer map then holds the maps.
func TestOuterKeepsTheLast(t *testing.T) {
	o, newInner := someOuter(t, 2)
	var given []*ebpf.Map
	var last ebpf.MapID
	for range 20 {
		m := newInner()
		given, last = append(given, m), number(t, m)
		if err := o.Install(map[uint32]*ebpf.Map{1: m}); err != nil {
			t.Fatal(err)
		}
		if got := held(o, 1); got != last {
			t.Fatalf("map %d is there, want %d", got, last)
		}
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	if got := held(o, 1); got != last {
		t.Errorf("in the end map %d is there, want %d", got, last)
	}
	for i, m := range given {
		if m.FD() >= 0 {
			t.Errorf("map %d of %d is still open", i, len(given))
		}
	}
}

// A map that cannot be installed is an error, does not keep out the others, and is not
// left open.
func TestOuterReportsWhatFailed(t *testing.T) {
	o, newInner := someOuter(t, 4)
	maps := map[uint32]*ebpf.Map{0: newInner(), 3: newInner(), 4: newInner()}
	want := map[uint32]ebpf.MapID{0: number(t, maps[0]), 3: number(t, maps[3])}
	if err := o.Install(maps); err == nil {
		t.Error("a slot beyond the last one was filled")
	}
	for slot, id := range want {
		if got := held(o, slot); got != id {
			t.Errorf("slot %d: map %d, want %d", slot, got, id)
		}
	}
	for slot, m := range maps {
		if m.FD() >= 0 {
			t.Errorf("the map for slot %d is still open", slot)
		}
	}
	if err := o.Install(nil); err != nil {
		t.Errorf("install nothing: %v", err)
	}
}

// Remove reports each slot once it is empty, at the latest when the outer map is closed,
// even a slot that was empty before.
func TestOuterRemoves(t *testing.T) {
	const slots = 40 // more than can wait at once
	o, newInner := someOuter(t, slots+1)
	maps := map[uint32]*ebpf.Map{}
	for slot := range uint32(slots) {
		maps[slot] = newInner()
	}
	if err := o.Install(maps); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var reported []uint32
	faults := []string{}
	for slot := range uint32(slots + 1) {
		o.Remove(slot, func(empty uint32) {
			mu.Lock()
			defer mu.Unlock()
			reported = append(reported, empty)
			if held(o, empty) != 0 {
				faults = append(faults, fmt.Sprintf("slot %d was reported before it was empty", empty))
			}
		})
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
	slices.Sort(reported)
	for i, slot := range reported {
		if slot != uint32(i) {
			t.Fatalf("slots %v were reported", reported)
		}
	}
	if len(reported) != slots+1 || len(faults) > 0 {
		t.Errorf("%d slots were reported, want %d; %q", len(reported), slots+1, faults)
	}
}
