package survey

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/linux/resident"
	"rtrace-bpf/internal/testutil"
)

// swapping gives the kernel a swap file of 64 MiB until the test ends.
func swapping(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED-PRIVILEGE: adding a swap file needs root")
	}
	mkswap, swapon, swapoff := testutil.Installed(t, "mkswap"), testutil.Installed(t, "swapon"), testutil.Installed(t, "swapoff")
	file := filepath.Join(t.TempDir(), "swap")
	if err := os.WriteFile(file, make([]byte, 64*mib), 0o600); err != nil {
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
	d := unchanged(t, child.PID)
	leads(t, d, explain.AboutSwap)
	if got := sizes(d, explain.Live).size; got < live.size/5 || got > live.size/2 {
		t.Errorf("%d bytes of live blocks were read, want those of a quarter of %d bytes", got, live.size)
	}
	if d.Swap < h.Resident/2 {
		t.Errorf("%d bytes are swapped out of a heap of %d", d.Swap, h.Resident)
	}

	pageOut(t, child.PID, h.Start, h.End)
	d = unchanged(t, child.PID)
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
	d := unchanged(t, child.PID)
	if d.Heap == nil || len(d.Heap.Arenas) > 0 || !strings.Contains(d.Heap.Why, "swapped out") {
		t.Errorf("the heap is %+v", d.Heap)
	}
	child.Go()
	child.Succeed()
	if live := sizes(d, explain.Live); live.count == 0 || live.size != numbers(t, child.Output())["hblkhd"] {
		t.Errorf("%+v is live, want %s", live, child.Output())
	}
}

// Live blocks with mappings of their own keep their sizes while they are swapped out, if their
// headers are still in memory.
func TestSwappedBlocks(t *testing.T) {
	program := testutil.Build(t, "residence", "-pthread")
	swapping(t)
	child := testutil.Spawn(t, program, "heap", "1")
	child.Ready()
	before := sizes(document(t, child.PID), explain.Live)
	for _, m := range mapped(t, child.PID, "") {
		// The largest block has 3 MiB; the kernel has merged its mapping with those of two others
		// below it.
		if n := m.End - m.Start; m.Path == "" && m.Perms&proc.Write != 0 && n > 3*mib && n < 5*mib {
			pageOut(t, child.PID, m.End-2*mib, m.End)
		}
	}
	d := unchanged(t, child.PID)
	live := sizes(d, explain.Live)
	if live.size != before.size || live.count != before.count || d.Swap < mib || live.resident > before.resident-d.Swap+64<<10 {
		t.Errorf("%+v is live, and was %+v; %d bytes are swapped out, want about 2 MiB", live, before, d.Swap)
	}
	child.Go()
	child.Succeed()
}

// The memory of a Python program goes to swap and comes back: each part keeps its row.
func TestSwappedService(t *testing.T) {
	swapping(t)
	const script = `import sys
objects = [str(i) * 4 for i in range(300000)]
print("ready", flush=True)
sys.stdin.readline()
print(sum(len(o) for o in objects), flush=True)
sys.stdin.read()`
	pid, more := conversation(t, exec.Command("python3", "-c", script))
	before := sizes(document(t, pid), explain.Managed)
	for _, m := range mapped(t, pid, "") {
		if m.Path == "" || m.Path == "[heap]" {
			pageOut(t, pid, m.Start, m.End)
		}
	}
	d := unchanged(t, pid)
	leads(t, d, explain.AboutSwap)
	i := slices.IndexFunc(d.Rows, func(r explain.Row) bool { return r.Kind == explain.Managed })
	if i < 0 || d.Rows[i].Swap < before.resident*9/10 || !strings.Contains(d.Verdicts[0].Text, d.Rows[i].What) {
		t.Errorf("%q does not lead to the objects, which had %d bytes: %+v", d.Verdicts[0].Text, before.resident, d.Rows)
	}
	more() // reads all objects
	if again := sizes(document(t, pid), explain.Managed); again.resident < before.resident/2 || again.resident > before.resident+mib {
		t.Errorf("%d bytes of objects are back, of %d", again.resident, before.resident)
	}
}

// unchanged reads a process. The rows must have the swap that the kernel counts, and reading must
// not change it.
func unchanged(t *testing.T, pid int) *explain.Document {
	t.Helper()
	before, err := resident.Total(pid)
	if err != nil {
		t.Fatal(err)
	}
	d := document(t, pid)
	var swap uint64
	for _, r := range d.Rows {
		swap += r.Swap
	}
	if swap != before.Swap || d.Swap != before.Swap {
		t.Errorf("%d bytes of the rows are swapped out, and %d of the process; the kernel counted %d", swap, d.Swap, before.Swap)
	}
	return d
}
