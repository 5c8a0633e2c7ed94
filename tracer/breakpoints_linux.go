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

// breakpoints are those of the probes in the memory of a process, whether threads of it
// come or go.
type breakpoints struct {
	memory *os.File
	places []breakpoint
}

type breakpoint struct {
	address  uint64
	original instruction
}

// instruction is the first bytes of one in a file: as many as the kernel changes of it
// (one on x86, four on arm64), or more.
type instruction []byte

const instructionBytes = 4

// readInstruction reads what is at an offset of a file, which may end soon behind it.
func readInstruction(f *os.File, offset uint64) instruction {
	code := make([]byte, instructionBytes)
	n, _ := f.ReadAt(code, int64(offset)) // nothing is compared then
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
	if k.Functions != nil {
		probed = slices.Concat(probed, k.Functions.groups())
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
		return nil, fmt.Errorf("look at the probes: %w", err)
	}
	return b, nil
}

// isGone says that what was to be looked at has ended.
func isGone(err error) bool {
	return errors.Is(err, proc.ErrNoProcess) || errors.Is(err, proc.ErrGone) || errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH)
}

// missing says whether one of them is out. Memory that cannot be read, since it was
// unmapped or the process has ended, is not missed.
func (b *breakpoints) missing() bool {
	var code [instructionBytes]byte
	return slices.ContainsFunc(b.places, func(p breakpoint) bool {
		now := code[:len(p.original)]
		_, err := b.memory.ReadAt(now, int64(p.address))
		return err == nil && bytes.Equal(now, p.original)
	})
}

func (b *breakpoints) Close() { b.memory.Close() }
