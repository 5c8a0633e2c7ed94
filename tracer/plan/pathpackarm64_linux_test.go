package plan

import (
	"math/rand/v2"
	"testing"

	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/site"
	"rtrace-bpf/tracer/site/cover"
)

// holdsPacked reports whether the condition of a packed site of arm64 holds, as bpf/pass_arm64.h
// reads it.
func holdsPacked(packed uint64, flags uint64, regs *[32]uint64) bool {
	c := uint32(packed>>10)&0xf | uint32(packed>>47)&0xff0
	switch {
	case packed>>39&1 == 0:
		return true
	case c&0xc00 == 0:
		n, z, v := flags>>31&1 == 1, flags>>30&1 == 1, flags>>28&1 == 1
		all := []bool{z, flags>>29&1 == 1, n, v, flags>>29&1 == 1 && !z, n == v, n == v && !z}
		return all[c>>1] != (c&1 == 1)
	case c&0x800 != 0:
		return regs[c&0x1f]>>(c>>5&0x1f)&1 != uint64(c>>10&1)
	case c&0x20 == 0:
		return (uint32(regs[c&0x1f]) == 0) != (c>>6&1 == 1)
	}
	return (regs[c&0x1f] == 0) != (c>>6&1 == 1)
}

// Packed conditions of arm64 hold where the conditions do.
func TestConditionsOfARM64(t *testing.T) {
	var all []cover.Condition
	for _, not := range []bool{false, true} {
		for code := range uint8(14) {
			all = append(all, cover.Condition{Kind: cover.Flags, Code: code, Not: not})
		}
		for reg := range uint8(29) {
			if reg == 18 {
				continue
			}
			for _, width := range []uint8{32, 64} {
				all = append(all, cover.Condition{Kind: cover.RegZero, Reg: reg, Bit: width, Not: not})
			}
			for bit := range uint8(32) {
				all = append(all, cover.Condition{Kind: cover.BitSet, Reg: reg, Bit: bit, Not: not})
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[uint64]cover.Condition{}
	for _, when := range all {
		x := pathPackerARM64{pathPacker{site: &cover.Site{When: when}, word: 8}, true}
		packed, err := x.condition()
		if err != nil {
			t.Errorf("%v has no room", when)
		}
		for range 50 {
			var regs [32]uint64
			for i := range regs {
				regs[i] = random.Uint64() << (32 * random.IntN(3)) // some are 0, some in their lower half
			}
			flags := random.Uint64N(16) << 28
			reg := func(n uint8) uint64 { return regs[n] }
			if got, want := holdsPacked(packed, flags, &regs), when.Holds(true, flags, reg); got != want {
				t.Fatalf("%v packed as %#x holds: %v, want %v, with %#x in its register and flags %#x", when, packed, got, want, regs[when.Reg], flags)
			}
		}
		if other, ok := seen[packed]; ok && when.Kind != cover.Flags {
			t.Errorf("%v and %v are both packed as %#x", when, other, packed)
		}
		seen[packed] = when
	}
	for _, when := range []cover.Condition{
		{Kind: cover.BitSet, Reg: 3, Bit: 32},
		{Kind: cover.BitSet, Reg: 29},
		{Kind: cover.RegZero, Reg: 18, Bit: 64},
		{Kind: cover.RegZero, Reg: site.NoReg, Bit: 64},
		{Kind: cover.Always},
		{Kind: cover.Always, Not: true},
	} {
		x := pathPackerARM64{pathPacker{site: &cover.Site{When: when}, word: 8}, true}
		if packed, err := x.condition(); err == nil {
			t.Errorf("%v is packed as %#x", when, packed)
		}
	}
}

// A site of arm64 is packed where its frame record is found, and only there.
func TestFramesOfARM64(t *testing.T) {
	on := func(offset int) cover.Place { return cover.Place{Reg: site.NoReg, Stack: true, Offset: offset} }
	in := func(reg uint8) cover.Place { return cover.Place{Reg: reg} }
	const refused = 8
	for _, c := range []struct {
		frame, link cover.Place
		want        uint64
	}{
		{in(29), in(30), 0},
		{on(0), on(8), 1},
		{on(16), on(24), 3},
		{on(48), on(56), 7},
		{on(56), on(64), refused},
		{on(0), on(16), refused},
		{on(-16), on(-8), refused},
		{on(0), in(30), refused},
		{in(29), on(8), refused},
		{in(19), in(30), refused},
		{in(site.NoReg), in(site.NoReg), refused},
	} {
		x := pathPackerARM64{pathPacker{site: &cover.Site{Frame: c.frame, Link: c.link}, word: 8}, false}
		got, err := x.frame()
		if err != nil {
			got = refused
		}
		if got != c.want {
			t.Errorf("frame pointer %+v, return address %+v: packed as %d, want %d", c.frame, c.link, got, c.want)
		}
	}
}

// On arm64 a report and a note at one address are one site; on x86-64 they have no place.
func TestNotesJoinReports(t *testing.T) {
	report, note := cover.Site{Addr: 4, Role: cover.Report}, cover.Site{Addr: 4, Role: cover.Note}
	finish := cover.Site{Addr: 8, Role: cover.Finish}
	for _, sites := range [][]cover.Site{{report, note, finish}, {note, report, finish}} {
		c := code{machine: &process.Machine{Arch: site.ARM64}}
		all, err := c.joinNotes(sites)
		if err != nil || len(all) != 2 || all[0].Role != cover.Report || !all[0].notes || all[1].notes {
			t.Errorf("joined to %+v: %v", all, err)
		}
		c = code{machine: &process.Machine{Arch: site.AMD64}}
		if all, err := c.joinNotes(sites); err == nil {
			t.Errorf("on x86-64 joined to %+v", all)
		}
	}
	c := code{machine: &process.Machine{Arch: site.ARM64}}
	for _, sites := range [][]cover.Site{{report, note, note}, {note, note}, {finish, {Addr: 8, Role: cover.Note}}} {
		if all, err := c.joinNotes(sites); err == nil {
			t.Errorf("%v joined to %+v", sites, all)
		}
	}
}
