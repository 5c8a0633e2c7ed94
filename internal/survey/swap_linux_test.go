package survey

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/linux/resident"
	"rtrace-bpf/internal/testutil"
)

// swapping gives the kernel a swap file of 128 MiB until the test ends.
func swapping(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-PRIVILEGE: adding a swap file needs root")
	}
	mkswap, swapon, swapoff := testutil.Installed(t, "mkswap"), testutil.Installed(t, "swapon"), testutil.Installed(t, "swapoff")
	file := filepath.Join(t.TempDir(), "swap")
	if err := os.WriteFile(file, make([]byte, 128*mib), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(mkswap, file).CombinedOutput(); err != nil {
		t.Fatalf("mkswap: %v\n%s", err, out)
	}
	if out, err := exec.Command(swapon, file).CombinedOutput(); err != nil {
		t.Skipf("SKIPPED-KERNEL: it does not accept a swap file on this file system: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(swapoff, file).CombinedOutput(); err != nil {
			t.Errorf("swapoff: %v\n%s", err, out)
		}
	})
}

// pageOut asks the kernel to swap out memory of a process.
func pageOut(t *testing.T, pid int, start, end uint64) {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	memory := [2]uint64{start, end - start} // struct iovec
	if _, _, errno := unix.Syscall6(unix.SYS_PROCESS_MADVISE, uintptr(fd), uintptr(unsafe.Pointer(&memory)), 1, unix.MADV_PAGEOUT, 0, 0); errno != 0 {
		t.Skipf("SKIPPED-KERNEL: it has no process_madvise: %v", errno)
	}
}

// mapped returns the mappings of a process whose names end with a name.
func mapped(t *testing.T, pid int, name string) (all []resident.Mapping) {
	t.Helper()
	mappings, err := resident.Mappings(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mappings {
		if strings.HasSuffix(m.Path, name) {
			all = append(all, m)
		}
	}
	if len(all) == 0 {
		t.Fatalf("no mapping of %s", name)
	}
	return all
}

// What is swapped out is counted as the kernel counts it, and nothing is brought back.
func TestSwap(t *testing.T) {
	program := testutil.Build(t, "residence", "-pthread")
	swapping(t)
	child := testutil.Spawn(t, program, "leak", "20")
	child.Ready()
	live := sizes(document(t, child.PID), explain.Live)
	h := mapped(t, child.PID, "[heap]")[0]
	quarter := h.Start + (h.End-h.Start)/4

	pageOut(t, child.PID, quarter&^0xfff, h.End)
	d := unchanged(t, child)
	leads(t, d, explain.AboutSwap)
	if got := sizes(d, explain.Live).size; got < live.size/5 || got > live.size/2 {
		t.Errorf("%d bytes of live blocks were read, want those of a quarter of %d bytes", got, live.size)
	}
	if d.Swap < h.Resident/2 {
		t.Errorf("%d bytes are swapped out of a heap of %d", d.Swap, h.Resident)
	}

	pageOut(t, child.PID, h.Start, h.End)
	d = unchanged(t, child)
	leads(t, d, explain.AboutSwap)
	if text := d.Verdicts[0].Text; !strings.Contains(text, "memory of malloc and stacks that is swapped out") {
		t.Errorf("the verdict is %q", text)
	}
	child.Go()
	child.Succeed()
}

// Without the C library's data, arenas are not found, and the reason is not its version. Blocks
// with mappings of their own still are, and the rows add up.
func TestSwappedLibrary(t *testing.T) {
	program := testutil.Build(t, "residence", "-pthread")
	swapping(t)
	child := testutil.Spawn(t, program, "heap", "1")
	child.Ready()
	for _, m := range mapped(t, child.PID, "libc.so.6") {
		if m.Perms&proc.Write != 0 {
			pageOut(t, child.PID, m.Start, m.End)
		}
	}
	d := unchanged(t, child)
	if d.Heap == nil || len(d.Heap.Arenas) > 0 || !strings.Contains(d.Heap.Why, "swapped out") {
		t.Errorf("the heap is %+v", d.Heap)
	}
	child.Go()
	child.Succeed()
	if live := sizes(d, explain.Live); live.count == 0 || live.size != numbers(t, child.Output())["hblkhd"] {
		t.Errorf("%+v is live, want %s", live, child.Output())
	}
}

// unchanged reads a process. The rows must have the swap that the kernel counts, and reading must
// not change it.
func unchanged(t *testing.T, child *testutil.Child) *explain.Document {
	t.Helper()
	before, err := resident.Total(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	d := document(t, child.PID)
	var swap uint64
	for _, r := range d.Rows {
		swap += r.Swap
	}
	if swap != before.Swap || d.Swap != before.Swap {
		t.Errorf("%d bytes of the rows are swapped out, and %d of the process; the kernel counted %d", swap, d.Swap, before.Swap)
	}
	return d
}
