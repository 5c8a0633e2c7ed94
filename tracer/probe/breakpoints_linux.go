package probe

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"rtrace-bpf/internal/linux/proc"
)

// Breakpoints are the places of probes in the memory of a process. They stay readable
// while threads start and end.
type Breakpoints struct {
	memory *os.File
	places []breakpoint
}

type breakpoint struct {
	address  uint64
	original instruction
}

// instruction is the first bytes of an instruction in a file: at least those that the
// kernel replaces (one on x86, four on arm64).
type instruction []byte

const instructionBytes = 4

// readInstruction reads the instruction at an offset of a file, which may end soon after
// it.
func readInstruction(f *os.File, offset uint64) instruction {
	code := make([]byte, instructionBytes)
	n, _ := f.ReadAt(code, int64(offset)) // on an error the place is not compared
	return code[:n]
}

// findBreakpoints finds the probes of groups in the memory of a thread. The caller must
// close the result.
func findBreakpoints(groups []probeGroup, tid int) (*Breakpoints, error) {
	maps, err := proc.Maps(tid)
	if err != nil {
		return nil, err
	}
	b := &Breakpoints{}
	for i := range groups {
		g := &groups[i]
		for j := range g.probes {
			if at := g.probes[j].Address(maps); at != 0 && len(g.originals[j]) > 0 {
				b.places = append(b.places, breakpoint{at, g.originals[j]})
			}
		}
	}
	if b.memory, err = os.Open(fmt.Sprintf("/proc/%d/mem", tid)); err != nil {
		return nil, fmt.Errorf("read the probes: %w", err)
	}
	return b, nil
}

// Missing reports whether a breakpoint is not in place. Memory that cannot be read does
// not count: it was unmapped, or the process has ended.
func (b *Breakpoints) Missing() bool {
	var code [instructionBytes]byte
	return slices.ContainsFunc(b.places, func(p breakpoint) bool {
		now := code[:len(p.original)]
		_, err := b.memory.ReadAt(now, int64(p.address))
		return err == nil && bytes.Equal(now, p.original)
	})
}

// Close closes the memory of the process.
func (b *Breakpoints) Close() { b.memory.Close() }
