package live

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// TestRecent compares a table with a map: with blocks that live shortly and get the addresses
// of others, with blocks that stay, and with new addresses only. These make the table do without
// recent for a while.
func TestRecent(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	table, model := New(), map[key]Entry{}
	opened, closed := 0, 0
	var free []key
	for i := range 400_000 {
		was := table.recent.slots != nil
		switch phase := i / 50_000; {
		case phase == 1 || phase == 2: // no address comes again soon
			putBoth(t, table, model, key{1, uint64(i) << 4}, uint64(i))
			if old := (key{1, uint64(i-5000) << 4}); i%5 != 0 {
				removeBoth(t, table, model, old)
			}
		case len(free) > 0 && rnd.IntN(10) < 9:
			k := free[len(free)-1]
			free = free[:len(free)-1]
			putBoth(t, table, model, k, uint64(i))
			if rnd.IntN(100) > 0 {
				removeBoth(t, table, model, k)
				free = append(free, k)
			}
		default:
			k := key{uint32(rnd.IntN(3)), uint64(rnd.IntN(3000)) << 4}
			switch rnd.IntN(5) {
			case 0, 1:
				putBoth(t, table, model, k, uint64(i))
			case 2:
				removeBoth(t, table, model, k)
				free = append(free, k)
			case 3:
				retainBoth(t, table, model, k)
			case 4:
				releaseBoth(t, table, model, k)
			}
		}
		switch is := table.recent.slots != nil; {
		case is && !was:
			opened++
		case was && !is:
			closed++
		}
		if i%50_000 == 0 {
			same(t, table, model)
		}
	}
	same(t, table, model)
	if opened < 2 || closed < 1 {
		t.Errorf("opened %d times, closed %d times", opened, closed)
	}
	table.Clear()
	same(t, table, map[key]Entry{})
}

func putBoth(t *testing.T, table *Table, model map[key]Entry, k key, v uint64) {
	t.Helper()
	want, had := model[k]
	if old, replaced := table.Insert(k.resource, k.id, v%1000, v); replaced != had || old != want {
		t.Fatalf("Insert %v: %v, %v; want %v, %v", k, old, replaced, want, had)
	}
	model[k] = Entry{ID: k.id, Resource: k.resource, Size: v % 1000, Value: v, Refs: 1}
}

func removeBoth(t *testing.T, table *Table, model map[key]Entry, k key) {
	t.Helper()
	want, had := model[k]
	if e, ok := table.Remove(k.resource, k.id); ok != had || e != want {
		t.Fatalf("Remove %v: %v, %v; want %v, %v", k, e, ok, want, had)
	}
	delete(model, k)
}

func retainBoth(t *testing.T, table *Table, model map[key]Entry, k key) {
	t.Helper()
	e, had := model[k]
	if ok := table.Retain(k.resource, k.id); ok != had {
		t.Fatalf("Retain %v: %v, want %v", k, ok, had)
	}
	if had {
		e.Refs++
		model[k] = e
	}
}

func releaseBoth(t *testing.T, table *Table, model map[key]Entry, k key) {
	t.Helper()
	want, had := model[k]
	if had {
		want.Refs--
		model[k] = want
		if want.Refs == 0 {
			delete(model, k)
		}
	}
	if e, ok := table.Release(k.resource, k.id); ok != had || e != want {
		t.Fatalf("Release %v: %v, %v; want %v, %v", k, e, ok, want, had)
	}
}

// same compares all blocks of a table and its sums with a map, and each block by itself.
func same(t *testing.T, table *Table, model map[key]Entry) {
	t.Helper()
	got, bytes := map[key]Entry{}, uint64(0)
	for e := range table.All() {
		k := key{e.Resource, e.ID}
		if _, twice := got[k]; twice {
			t.Fatalf("%v is there twice", k)
		}
		got[k] = e
		bytes += e.Size
		if own, ok := table.Get(k.resource, k.id); !ok || own != e {
			t.Fatalf("Get %v: %v, %v; want %v", k, own, ok, e)
		}
	}
	if !maps.Equal(model, got) {
		t.Fatalf("%d blocks, want %d others", len(got), len(model))
	}
	if table.Len() != len(model) || table.Bytes() != bytes {
		t.Errorf("%d blocks of %d bytes, want %d and %d", table.Len(), table.Bytes(), len(model), bytes)
	}
}
