package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/trace"
)

// mptlSite is a call site of an mpatrol profile (MPTL): an address, its caller, and its
// allocations. Numbers are by class of size.
type mptlSite struct {
	parent                     int // index of the caller's site; 0 if there is none
	addr                       uint64
	name                       string // of its function; may be empty
	count, bytes, freed, given [4]uint64
}

// readMPTL reads the call sites of a profile that the real mpatrol wrote: words
// of 8 bytes (byte order, version, three bounds, number of bins, the bins twice
// with the bytes of the last one, sums by class, call sites, addresses of
// symbols) and the names of the symbols.
func readMPTL(t *testing.T, path string) map[int]*mptlSite {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const magic = "MPTL"
	if !strings.HasPrefix(string(data), magic) || !strings.HasSuffix(string(data), magic) {
		t.Fatalf("%s is no profile", path)
	}
	rest := data[len(magic):]
	word := func() uint64 {
		w := binary.LittleEndian.Uint64(rest)
		rest = rest[8:]
		return w
	}
	var head [6]uint64
	for i := range head {
		head[i] = word()
	}
	if head != [...]uint64{1, 10501, 32, 256, 2048, 1024} {
		t.Fatalf("head %v", head)
	}
	rest = rest[2*8*(1024+1):]
	var sums [][4][4]uint64
	for n := word(); n > 0; n-- {
		word() // its index, from 1
		var s [4][4]uint64
		for i := range s {
			for class := range s[i] {
				s[i][class] = word()
			}
		}
		sums = append(sums, s)
	}
	sites := map[int]*mptlSite{}
	names := map[*mptlSite]uint64{}
	for n := word(); n > 0; n-- {
		index := int(word())
		s := &mptlSite{parent: int(word()), addr: word()}
		word() // number of the symbol
		names[s] = word()
		if sum := word(); sum > 0 {
			x := sums[sum-1]
			s.count, s.bytes, s.freed, s.given = x[0], x[1], x[2], x[3]
		}
		sites[index] = s
	}
	for n := word(); n > 0; n-- {
		word()
	}
	size := word()
	table := rest[:size]
	for s, at := range names {
		s.name, _, _ = strings.Cut(string(table[at:]), "\x00")
	}
	return sites
}

// writeMPTL writes a trace with the sums of a profile. A profile does not have the size of
// each block, so all blocks of a class but one are as small as possible.
func writeMPTL(t *testing.T, sites map[int]*mptlSite) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "profile.jsonl")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := jsonl.New(f)
	id := uint64(0)
	put := func(op trace.Op, id, size uint64, stack trace.Stack) {
		r := trace.Record{Kind: trace.KindCall, Call: trace.Call{Op: op, ID: id, Size: size, Stack: stack}}
		if e := w.WriteRecord(&r); e != nil {
			t.Fatal(e)
		}
	}
	for _, s := range sites {
		var stack trace.Stack
		for at := s; at != nil; at = sites[at.parent] {
			stack.Frames = append(stack.Frames, at.addr)
			stack.Names = append(stack.Names, at.name)
		}
		for class := range s.count {
			// Blocks that are freed, and those that stay.
			for _, part := range [...]struct {
				count, bytes uint64
				free         bool
			}{{s.freed[class], s.given[class], true}, {s.count[class] - s.freed[class], s.bytes[class] - s.given[class], false}} {
				for _, size := range spread(t, class, part.count, part.bytes) {
					id += 16
					put(trace.OpAlloc, id, size, stack)
					if part.free {
						put(trace.OpFree, id, 0, trace.Stack{})
					}
				}
			}
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

// spread returns n sizes of a class that add up to bytes.
func spread(t *testing.T, class int, count, bytes uint64) []uint64 {
	t.Helper()
	bounds := [...]uint64{0, 32, 256, 2048, 1 << 63}
	sizes := make([]uint64, count)
	for i := range sizes {
		left := count - uint64(i) - 1
		sizes[i] = min(bounds[class+1], bytes-left*(bounds[class]+1))
		bytes -= sizes[i]
		if sizes[i] <= bounds[class] {
			t.Fatal(fmt.Sprint("no such sizes: class ", class, ", count ", count))
		}
	}
	if bytes != 0 {
		t.Fatalf("class %d: %d bytes are left", class, bytes)
	}
	return sizes
}
