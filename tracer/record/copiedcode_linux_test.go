package record

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/plan"
	"rtrace-bpf/tracer/process"
)

// Words of code are those in the process's memory. Words of the kernel's library can be
// read even after the process has ended: signal handlers of arm64 return to it, and no
// table describes that.
func TestCodeWords(t *testing.T) {
	testutil.NeedBPF(t)
	child := testutil.Spawn(t, testutil.Build(t, "loop"), "1", "1")
	child.Ready()
	target, err := process.Open(child.PID, host.Kernel{})
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	code, _, _ := follow()
	all, err := target.Mappings()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		code.add(m, 1)
	}
	words := codeWords{newCopies(target, &plan.Options{Depth: 8}, code)}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", child.PID))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	kernels := map[uint64]uint64{} // the library's words
	for _, m := range all {
		if !nameable(m) || m.Path == "[vsyscall]" {
			continue
		}
		var want [8]byte
		addr := m.Start + 0x123
		if _, err := memory.ReadAt(want[:], int64(addr)); err != nil {
			t.Fatal(err)
		}
		word := binary.LittleEndian.Uint64(want[:])
		if got, ok := words.Word(addr); !ok || got != word {
			t.Errorf("%s at %#x: %#x (%v), want %#x", m.Path, addr, got, ok, word)
		}
		if m.Path == process.Vdso {
			kernels[addr] = word
		}
	}
	if len(kernels) != 1 {
		t.Errorf("words of %d libraries of the kernel", len(kernels))
	}
	if _, ok := words.Word(0x10); ok {
		t.Error("the word at 0x10 is code")
	}
	child.Go()
	child.Succeed()
	clear(words.words)
	for addr, want := range kernels {
		if got, ok := words.Word(addr); !ok || got != want {
			t.Errorf("after the process has ended: %#x (%v), want %#x", got, ok, want)
		}
	}
}
