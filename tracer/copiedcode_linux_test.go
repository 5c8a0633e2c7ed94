package tracer

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// Code is what the process has in memory, that of the kernel's library also when the
// process has ended: on arm64 signal handlers return to it, and no table has that.
func TestCodeWords(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "loop"), "1", "1")
	child.Ready()
	target, err := openTarget(child.PID, kernelFeatures{})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	code, _, _ := follow()
	all, err := target.mappings()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		code.add(m, 1)
	}
	words := codeWords{newCopies(target, &Options{Depth: 8}, code)}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", child.PID))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	kernels := map[uint64]uint64{} // the library's words
	for _, m := range all {
		if !named(m) || m.path == "[vsyscall]" {
			continue
		}
		var want [8]byte
		addr := m.start + 0x123
		if _, err := memory.ReadAt(want[:], int64(addr)); err != nil {
			t.Fatal(err)
		}
		word := binary.LittleEndian.Uint64(want[:])
		if got, ok := words.Word(addr); !ok || got != word {
			t.Errorf("%s at %#x: %#x (%v), want %#x", m.path, addr, got, ok, word)
		}
		if m.path == vdso {
			kernels[addr] = word
		}
	}
	if len(kernels) != 1 {
		t.Errorf("%d libraries of the kernel", len(kernels))
	}
	if _, ok := words.Word(0x10); ok {
		t.Error("there is code at 0x10")
	}
	child.Go()
	child.Succeed()
	clear(words.words)
	for addr, want := range kernels {
		if got, ok := words.Word(addr); !ok || got != want {
			t.Errorf("of a process that has ended: %#x (%v), want %#x", got, ok, want)
		}
	}
}
