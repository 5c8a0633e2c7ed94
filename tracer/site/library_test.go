package site

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The branches of a library are those that a look at all of its code finds, for any entries, and
// whether they are asked for together or one by one.
func TestLibrary(t *testing.T) {
	const base, size = 0x1000, 1 << 14
	for _, arch := range []Arch{AMD64, I386, ARM64} {
		t.Run(arch.String(), func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, uint64(arch)))
			code := make([]byte, size)
			for i := range code {
				code[i] = byte(random.Uint32())
			}
			for i := 0; i+8 < size; i += 16 { // random bytes have hardly any branches within the code
				copy(code[i:], branchTo(arch, base+uint64(i), base+uint64(random.IntN(size))))
			}
			l := NewLibrary(arch, code, base)
			found := 0
			for range 200 {
				entries := []uint64{base + uint64(random.IntN(size-Window)), base + uint64(random.IntN(size-Window))}
				want := Branches(arch, code, base, entries)
				found += len(want)
				if diff := cmp.Diff(want, l.Branches(entries)); diff != "" {
					t.Fatalf("%#x (-all code +library):\n%s", entries, diff)
				}
				returns, jumps := InternalCallers(arch, code, base, entries[0])
				gotReturns, gotJumps := l.InternalCallers(entries[0])
				if diff := cmp.Diff([][]uint64{returns, jumps}, [][]uint64{gotReturns, gotJumps}); diff != "" {
					t.Fatalf("callers of %#x (-all code +library):\n%s", entries[0], diff)
				}
			}
			if found == 0 {
				t.Error("no branches: the test shows nothing")
			}
		})
	}
}

// branchTo returns a call, a jump or a conditional jump at pc to an address.
func branchTo(arch Arch, pc, to uint64) []byte {
	if arch == ARM64 {
		op := []uint32{0x94000000, 0x14000000}[to&1]
		return le32(op | uint32(int64(to&^3-pc)>>2)&0x3ffffff)
	}
	prefix := [][]byte{{0xe8}, {0xe9}, {0x0f, 0x85}}[to%3]
	return append(prefix, le32(uint32(to-pc-uint64(len(prefix))-4))...)
}

func le32(v uint32) []byte { return []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)} }
