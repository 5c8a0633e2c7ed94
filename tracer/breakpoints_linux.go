package tracer

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/linux/proc"
)

// breakpoints are the places of the probes in the memory of a process. They stay readable
// while threads start and end.
type breakpoints struct {
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

// breakpoints finds the probes in the memory of a thread.
func (k *kernel) breakpoints(tid int) (*breakpoints, error) {
	maps, err := proc.Maps(tid)
	if err != nil {
		return nil, err
	}
	b := &breakpoints{}
	probed := k.probed
	if k.functions != nil {
		probed = slices.Concat(probed, k.functions.groups())
	}
	for i := range probed {
		g := &probed[i]
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

// isGone reports whether err means that the process or thread has ended.
func isGone(err error) bool {
	return errors.Is(err, proc.ErrNoProcess) || errors.Is(err, proc.ErrGone) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// missing reports whether a breakpoint is not in place. Memory that cannot be read does
// not count: it was unmapped, or the process has ended.
func (b *breakpoints) missing() bool {
	var code [instructionBytes]byte
	return slices.ContainsFunc(b.places, func(p breakpoint) bool {
		now := code[:len(p.original)]
		_, err := b.memory.ReadAt(now, int64(p.address))
		return err == nil && bytes.Equal(now, p.original)
	})
}

func (b *breakpoints) Close() { b.memory.Close() }
