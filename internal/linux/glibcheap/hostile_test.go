package glibcheap

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
)

// mutate changes words of a library's memory, and unmaps pages. next returns a number below n.
func mutate(m memory, next func(n uint64) uint64) {
	pages := make([]uint64, 0, len(m))
	for p := range m {
		pages = append(pages, p)
	}
	slices.Sort(pages)
	for range 1 + next(30) {
		at := pages[next(uint64(len(pages)))]*page + next(page/word)*word
		interesting := []uint64{
			0, 1, 16, 17, 32, 33, 1 << 63, ^uint64(0), brkStart, brkStart + 16, second, third, secondAt, mainAt,
			at, at - 16, at + 16, next(^uint64(0)), next(1 << 20), brkSize, flagMapped | 4096,
		}
		m.put(at, interesting[next(uint64(len(interesting)))])
	}
	for range next(3) {
		delete(m, pages[next(uint64(len(pages)))])
	}
}

// onceEach fails the test unless each byte of all heaps is counted once.
func onceEach(t *testing.T, m memory) {
	t.Helper()
	f := find(m)
	f.Mapped(context.Background(), []Extent{brk, {second, second + 8*page}})
	var want uint64
	for _, e := range f.Extents {
		want += e.End - e.Start
	}
	s := Amounts(f.Heap.Arenas)
	if sum := s.Live.Bytes + s.Free.Bytes + s.Top.Bytes + s.Own.Bytes + s.Unread.Bytes + s.Fast.Bytes + s.Cached.Bytes; sum != want {
		t.Fatalf("%d bytes are counted, want %d: %+v", sum, want, f.Heap.Arenas)
	}
	for _, a := range f.Heap.Arenas {
		for _, h := range a.Holes {
			if h.Resident > h.Bytes || h.Above.Resident > h.Above.Bytes || h.Bytes > a.Free.Bytes {
				t.Fatalf("hole %+v of %+v", h, a)
			}
		}
	}
}

// Whatever is in memory, reading it ends, and counts each byte once.
func TestHostile(t *testing.T) {
	for seed := range uint64(500) {
		m := library(versions[seed%uint64(len(versions))])
		mutate(m, rand.New(rand.NewPCG(seed, 1)).Uint64N)
		onceEach(t, m)
	}
}

func FuzzHeap(f *testing.F) {
	f.Add(byte(4), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	f.Add(byte(0), make([]byte, 200))
	f.Fuzz(func(t *testing.T, version byte, choices []byte) {
		m := library(versions[int(version)%len(versions)])
		mutate(m, func(n uint64) uint64 {
			var b [word]byte
			choices = choices[copy(b[:], choices):]
			return binary.LittleEndian.Uint64(b[:]) % n
		})
		onceEach(t, m)
	})
}

// Data that consists of empty bins which belong to no arena is given up after a while: looking
// at each place as a part of each possible arena would take hours.
func TestBinsWithoutEnd(t *testing.T) {
	m := memory{}
	const end = dataStart + 4<<20
	for at := uint64(dataStart); at < end; at += 2 * word {
		m.put(at, at-2*word, at-2*word)
	}
	f := Find(m, page, []Extent{{dataStart, end}}, brk)
	if len(f.Heap.Arenas) != 0 || f.Heap.Why == "" || f.reader.tries > 2*maxTries {
		t.Errorf("%+v after %d tries", f.Heap, f.reader.tries)
	}
}

// Heaps of an arena that lead in a circle are not followed for ever.
func TestHeapsInCircles(t *testing.T) {
	m := library(glibc236)
	other := uint64(second) + glibc236.head
	const fourth = third + heapMax
	m.put(third+word, fourth)
	m.put(fourth, other, third, 2*page, 2*page, page)
	f := find(m)
	if f.reader.heaps > maxHeaps || len(f.Heap.Arenas) != 2 || f.Heap.Arenas[1].Why == "" {
		t.Errorf("%d heaps, arenas %+v", f.reader.heaps, f.Heap.Arenas)
	}
}
