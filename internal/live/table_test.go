package live

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

type key struct {
	resource uint32
	id       uint64
}

// check compares the table with a map and checks its inner order.
func check(t *testing.T, tab *Table, want map[key]Entry) {
	t.Helper()
	got := map[key]Entry{}
	var bytes uint64
	for e := range tab.All() {
		k := key{e.Resource, e.ID}
		if _, twice := got[k]; twice {
			t.Fatalf("key %v is in the table twice", k)
		}
		got[k] = e
		bytes += e.Size
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("entries (-want +got):\n%s", d)
	}
	if tab.Len() != len(want) || tab.Bytes() != bytes {
		t.Fatalf("Len %d, Bytes %d; want %d, %d", tab.Len(), tab.Bytes(), len(want), bytes)
	}
	for i := range tab.shards {
		s := &tab.shards[i]
		used := 0
		for j := range s.slots {
			e := &s.slots[j]
			if e.state == 0 {
				continue
			}
			used++
			n := len(s.slots)
			d := (j - home(tab.hash(e.resource, e.id), n) + n) % n
			if d+1 != int(e.state&distMask) {
				t.Fatalf("shard %d slot %d: %d slots from home, but %d in its state", i, j, d, e.state&distMask)
			}
			before := &s.slots[(j+n-1)%n]
			if d > 0 && int(before.state&distMask) < d {
				t.Fatalf("shard %d slot %d: Robin Hood order is broken", i, j)
			}
		}
		if used != s.n || s.n > 0 && s.n > s.limit {
			t.Fatalf("shard %d: %d entries, counted %d, limit %d", i, used, s.n, s.limit)
		}
	}
}

// apply runs operations on a table and on a map. Each operation takes 4 bytes.
func apply(t *testing.T, ops []byte) {
	tab := New()
	model := map[key]Entry{}
	for i := 0; i+4 <= len(ops); i += 4 {
		k := key{uint32(ops[i] >> 6), uint64(ops[i+1])<<4 | uint64(ops[i+2])<<20}
		size, value := uint64(ops[i+3])*3, uint64(i)
		cur, live := model[k]
		switch ops[i] % 5 {
		case 0, 1:
			old, replaced := tab.Insert(k.resource, k.id, size, value)
			if replaced != live || old != cur {
				t.Fatalf("Insert %v: %v %v, want %v %v", k, old, replaced, cur, live)
			}
			model[k] = Entry{ID: k.id, Size: size, Value: value, Resource: k.resource, Refs: 1}
		case 2:
			got, ok := tab.Remove(k.resource, k.id)
			if ok != live || got != cur {
				t.Fatalf("Remove %v: %v %v, want %v %v", k, got, ok, cur, live)
			}
			delete(model, k)
		case 3:
			if ok := tab.Retain(k.resource, k.id); ok != live {
				t.Fatalf("Retain %v: %v, want %v", k, ok, live)
			}
			if live {
				cur.Refs++
				model[k] = cur
			}
		case 4:
			got, ok := tab.Release(k.resource, k.id)
			if live {
				cur.Refs--
				model[k] = cur
				if cur.Refs == 0 {
					delete(model, k)
				}
			}
			if ok != live || got != cur {
				t.Fatalf("Release %v: %v %v, want %v %v", k, got, ok, cur, live)
			}
		}
		cur, live = model[k]
		if got, ok := tab.Get(k.resource, k.id); ok != live || got != cur {
			t.Fatalf("Get %v: %v %v, want %v %v", k, got, ok, cur, live)
		}
	}
	check(t, tab, model)
}

func FuzzTable(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 2, 1, 2, 3})
	f.Add([]byte{0, 1, 2, 3, 3, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3})
	f.Fuzz(apply)
}

// rng is a small generator (splitmix64), so that failures are reproducible.
type rng uint64

func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func TestRandomOperations(t *testing.T) {
	for seed := range 8 {
		r := rng(seed)
		ops := make([]byte, 40000)
		for i := range ops {
			ops[i] = byte(r.next() >> 24)
		}
		// Odd seeds use few keys, so that keys repeat.
		if seed%2 == 1 {
			for i := range ops {
				if i%4 == 2 {
					ops[i] &= 3
				}
			}
		}
		apply(t, ops)
	}
}

func TestGrowShrink(t *testing.T) {
	tab := New()
	const n = 200_000
	for i := range uint64(n) {
		tab.Insert(1, 0x7f0000000000+i*16, i, i)
	}
	if tab.Len() != n || tab.Bytes() != n*(n-1)/2 {
		t.Fatalf("Len %d, Bytes %d", tab.Len(), tab.Bytes())
	}
	if per := float64(tab.memory()) / n; per > 48 {
		t.Errorf("%.1f bytes per live block, want at most 48", per)
	}
	for i := range uint64(n) {
		if e, ok := tab.Remove(1, 0x7f0000000000+i*16); !ok || e.Value != i {
			t.Fatalf("Remove %d: %v %v", i, e, ok)
		}
	}
	check(t, tab, map[key]Entry{})
	if m := tab.memory(); m > shards*8*minSlots*32 {
		t.Errorf("an emptied table still holds %d bytes", m)
	}
}

// TestSlack checks the bound of the package comment while the table grows.
func TestSlack(t *testing.T) {
	if s := unsafe.Sizeof(slot{}); s != 32 {
		t.Fatalf("slot has %d bytes", s)
	}
	tab := New()
	for i := range uint64(200_000) {
		tab.Insert(uint32(i%3), i<<4, 1, 0)
		if n := tab.Len(); n >= 50_000 && n%10_000 == 0 {
			if per := float64(tab.memory()) / float64(n); per > 48 {
				t.Fatalf("%d blocks: %.1f bytes per block", n, per)
			}
		}
	}
}

func (t *Table) memory() int {
	m := 0
	for i := range t.shards {
		m += cap(t.shards[i].slots) * int(unsafe.Sizeof(slot{}))
	}
	return m
}

func TestEmpty(t *testing.T) {
	tab := New()
	if _, ok := tab.Get(1, 2); ok {
		t.Error("Get on an empty table finds something")
	}
	if _, ok := tab.Remove(1, 2); ok {
		t.Error("Remove on an empty table finds something")
	}
	if _, ok := tab.Release(1, 2); ok || tab.Retain(1, 2) {
		t.Error("Release or Retain on an empty table finds something")
	}
	// ID 0 and resource 0 are ordinary keys.
	tab.Insert(0, 0, 7, 9)
	if e, ok := tab.Get(0, 0); !ok || e != (Entry{Size: 7, Value: 9, Refs: 1}) {
		t.Errorf("Get: %v %v", e, ok)
	}
	tab.Clear()
	if tab.Len() != 0 || tab.Bytes() != 0 {
		t.Errorf("Len %d, Bytes %d after Clear", tab.Len(), tab.Bytes())
	}
	for e := range tab.All() {
		t.Errorf("entry %v after Clear", e)
	}
}

func TestAllStops(t *testing.T) {
	tab := New()
	for i := range uint64(10) {
		tab.Insert(1, i, 1, 1)
	}
	n := 0
	for range tab.All() {
		n++
		if n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d entries seen", n)
	}
}

func TestNoAllocation(t *testing.T) {
	tab := New()
	for i := range uint64(10_000) {
		tab.Insert(1, i<<4, 1, 1)
	}
	i := uint64(10_000)
	if a := testing.AllocsPerRun(1000, func() {
		tab.Insert(1, i<<4, 1, 1)
		tab.Remove(1, i<<4)
		i++
	}); a > 0.5 {
		t.Errorf("%.1f allocations per insertion and removal", a)
	}
}

// BenchmarkInsertRemove inserts and removes one block among n live ones. In
// "young" each removed block is one of the last 64 inserted, as for most
// blocks, and addresses repeat as with an allocator's free lists. In "old" it
// is the oldest of all, and addresses are random, so every operation misses the
// caches.
func BenchmarkInsertRemove(b *testing.B) {
	for _, n := range []int{1_000, 100_000, 1_000_000} {
		base := func() (*Table, []uint64) {
			tab := New()
			r := rng(1)
			ids := make([]uint64, n)
			for i := range ids {
				ids[i] = 0x7f0000000000 + r.next()>>24<<4
				tab.Insert(1, ids[i], 100, uint64(i))
			}
			return tab, ids
		}
		b.Run("young/"+sizeName(n), func(b *testing.B) {
			tab, _ := base()
			r := rng(2)
			var last [64]uint64
			var pool [1024]uint64
			for i := range pool {
				pool[i] = 0x560000000000 + r.next()>>40<<4
			}
			b.ReportAllocs()
			k := 0
			for b.Loop() {
				k++
				id := pool[k%len(pool)]
				tab.Remove(1, last[k%64])
				tab.Insert(1, id, 100, 1)
				last[k%64] = id
			}
		})
		b.Run("old/"+sizeName(n), func(b *testing.B) {
			tab, ids := base()
			r := rng(2)
			b.ReportAllocs()
			k := 0
			for b.Loop() {
				id := 0x7f0000000000 + r.next()>>24<<4
				tab.Remove(1, ids[k])
				tab.Insert(1, id, 100, 1)
				ids[k] = id
				if k++; k == n {
					k = 0
				}
			}
		})
	}
}

func sizeName(n int) string {
	switch {
	case n >= 1_000_000:
		return "live=1M"
	case n >= 100_000:
		return "live=100k"
	}
	return "live=1k"
}
