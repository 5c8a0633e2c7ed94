package survey

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/testutil"
)

// service starts a program that prints one line when nothing changes any more and then waits.
// The line is returned.
func service(t *testing.T, cmd *exec.Cmd) (pid int, line string) {
	t.Helper()
	pid, _, line = talk(t, cmd)
	return pid, line
}

// conversation starts such a program that prints another line when it has read one: more has it do
// that.
func conversation(t *testing.T, cmd *exec.Cmd) (pid int, more func()) {
	t.Helper()
	pid, more, _ = talk(t, cmd)
	return pid, more
}

func talk(t *testing.T, cmd *exec.Cmd) (pid int, more func(), line string) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()         // which ends it
		_ = cmd.Process.Kill() // unless it does not read
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	text, err := lines.ReadString('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	more = func() {
		t.Helper()
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return cmd.Process.Pid, more, strings.TrimSpace(text)
}

// A Python service that never frees its compressors: the leak is in C, not in the objects.
func TestPythonService(t *testing.T) {
	const script = `import sys, zlib
connections = []
for i in range(150):
    c = zlib.compressobj()
    c.compress(b"x" * 10000)
    connections.append(c)
print("ready", flush=True)
sys.stdin.read()`
	pid, _ := service(t, exec.Command("python3", "-c", script))
	d := document(t, pid)
	leads(t, d, explain.AboutLive)
	// deflate documents (1 << (windowBits+2)) + (1 << (memLevel+9)) bytes: 256 KiB by default.
	if live := sizes(d, explain.Live).size; live < 150*(256<<10) {
		t.Errorf("%d bytes are live, want at least 150 compressors of 256 KiB", live)
	}
	if !slices.Contains(d.Process.Runtimes, "python") {
		t.Errorf("runtimes %v", d.Process.Runtimes)
	}
}

// Objects of Python are in its own arenas.
func TestPythonObjects(t *testing.T) {
	const script = `import sys
objects = [str(i) * 4 for i in range(300000)]
print(sum(sys.getsizeof(o) for o in objects), flush=True)
sys.stdin.read()`
	pid, line := service(t, exec.Command("python3", "-c", script))
	d := document(t, pid)
	leads(t, d, explain.AboutManaged)
	want, err := strconv.ParseUint(line, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if got := sizes(d, explain.Managed).resident; got < want || got > want*2 {
		t.Errorf("arenas have %d bytes, the objects alone %d", got, want)
	}
}

// With musl, mappings have their rows, and no arenas are found.
func TestMusl(t *testing.T) {
	programs := []string{
		testutil.Build(t, "residence", testutil.Musl, "-pthread"),
		testutil.Build(t, "residence", testutil.Musl, "-static", "-pthread"),
	}
	for _, program := range programs {
		child := testutil.Spawn(t, program, "shared", "16")
		child.Ready()
		d := document(t, child.PID)
		leads(t, d, explain.AboutShared)
		if d.Heap != nil {
			t.Errorf("%s: musl has arenas: %+v", program, d.Heap)
		}
	}
}

// A static program contains the C library.
func TestStatic(t *testing.T) {
	child := testutil.Spawn(t, testutil.Build(t, "residence", "-static", "-pthread"), "pinned", "16")
	child.Ready()
	d := document(t, child.PID)
	leads(t, d, explain.AboutPinned)
	if d.Heap == nil || len(d.Heap.Arenas) != 1 || d.Heap.Arenas[0].Holes[0].Bytes < 15*mib {
		t.Errorf("%+v", d.Heap)
	}
}

// Go's heap is known from its addresses, or from the names of its mappings.
func TestGo(t *testing.T) {
	dir := t.TempDir()
	const program = `package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
)

func main() {
	var keep [][]byte
	for range 64 {
		b := make([]byte, 1<<20)
		for i := range b {
			b[i] = 1
		}
		keep = append(keep, b)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	fmt.Println(m.HeapInuse)
	_, _ = io.ReadAll(os.Stdin)
	runtime.KeepAlive(keep)
}
`
	source := filepath.Join(dir, "main.go")
	if err := os.WriteFile(source, []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "program")
	build := exec.Command("go", "build", "-o", exe, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pid, line := service(t, exec.Command(exe))
	d := document(t, pid)
	leads(t, d, explain.AboutManaged)
	inUse, err := strconv.ParseUint(line, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "Go heap", sizes(d, explain.Managed).resident, inUse, 0.1, 4*mib)
	if !slices.Equal(d.Process.Runtimes, []string{"go"}) || d.Heap != nil {
		t.Errorf("runtimes %v, heap %+v", d.Process.Runtimes, d.Heap)
	}
}

// node leaks buffers, which malloc has allocated. The other figures are V8's own.
func TestNodeBuffers(t *testing.T) {
	node := testutil.Installed(t, "node")
	const script = `const keep = [];
for (let i = 0; i < 100; i++) keep.push(Buffer.alloc(1 << 20, 1));
console.log(JSON.stringify(process.memoryUsage()));
process.stdin.on('data', () => keep.push(1)).resume();`
	pid, line := service(t, exec.Command(node, "-e", script))
	var usage struct{ HeapTotal, ArrayBuffers uint64 }
	if err := json.Unmarshal([]byte(line), &usage); err != nil {
		t.Fatalf("%v: %s", err, line)
	}
	d := document(t, pid)
	leads(t, d, explain.AboutLive)
	if live := sizes(d, explain.Live); live.resident < usage.ArrayBuffers || live.resident > usage.ArrayBuffers+16*mib {
		t.Errorf("%d bytes are live, the buffers have %d", live.resident, usage.ArrayBuffers)
	}
	near(t, "V8 heap", sizes(d, explain.Managed).size, usage.HeapTotal, 0.15, 2*mib)
}

// A Java program with native memory: direct buffers come from malloc.
func TestJavaNative(t *testing.T) {
	java, javac := testutil.Installed(t, "java"), testutil.Installed(t, "javac")
	dir := t.TempDir()
	const program = `import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

public class Native {
	public static void main(String[] args) throws Exception {
		List<ByteBuffer> keep = new ArrayList<>();
		for (int i = 0; i < 120; i++) {
			ByteBuffer b = ByteBuffer.allocateDirect(1 << 20);
			for (int j = 0; j < b.capacity(); j += 512)
				b.put(j, (byte) 1);
			keep.add(b);
		}
		System.out.println(Runtime.getRuntime().totalMemory());
		System.out.flush();
		System.in.read();
		System.exit(keep.size() > 0 ? 0 : 1);
	}
}
`
	if err := os.WriteFile(filepath.Join(dir, "Native.java"), []byte(program), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(javac, "-d", dir, filepath.Join(dir, "Native.java")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	pid, line := service(t, exec.Command(java, "-Xms64m", "-Xmx64m", "-XX:MaxDirectMemorySize=200m", "-cp", dir, "Native"))
	heap, err := strconv.ParseUint(line, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	d := document(t, pid)
	leads(t, d, explain.AboutLive)
	if live := sizes(d, explain.Live).resident; live < 120*mib {
		t.Errorf("%d bytes are live, want at least 120 buffers of 1 MiB", live)
	}
	for _, r := range d.Rows {
		if r.Kind == explain.Managed {
			near(t, "Java heap", r.Size, heap, 0.05, 4*mib)
		}
	}
	if !slices.Contains(d.Process.Runtimes, "jvm") || sizes(d, explain.Managed).size == 0 {
		t.Errorf("runtimes %v, rows %+v", d.Process.Runtimes, d.Rows)
	}
}

// allocatorFile returns the path of an allocator's library.
func allocatorFile(t *testing.T, name string) string {
	t.Helper()
	testutil.Extra(t, "other allocators")
	all, _ := filepath.Glob("/usr/lib/*/" + name)
	if len(all) == 0 {
		t.Fatalf("%s is not installed (make need-test-all installs it)", name)
	}
	return all[0]
}

// Other allocators: the memory that they have mapped, and how much of it is resident, is what
// their own statistics show.
func TestOtherAllocators(t *testing.T) {
	program := testutil.Build(t, "residence", "-pthread")
	for _, test := range []struct{ allocator, library string }{
		{"jemalloc", "libjemalloc.so.2"}, {"tcmalloc", "libtcmalloc_minimal.so.4"}, {"mimalloc", "libmimalloc.so.2.0"},
	} {
		library := allocatorFile(t, test.library)
		for _, args := range [][]string{{"leak", "40"}, {"heap", "4"}, {"pinned", "64"}} {
			t.Run(test.allocator+" "+args[0], func(t *testing.T) {
				cmd := exec.Command(program, args...)
				cmd.Env = append(os.Environ(), "LD_PRELOAD="+library)
				child := testutil.Start(t, cmd)
				child.Ready()
				d := document(t, child.PID)
				again := document(t, child.PID)
				threads := 0
				if args[0] == "heap" {
					threads = 4
				}
				if n := sizes(d, explain.Stacks).count; n != uint64(threads+1) { // and that of the program
					t.Errorf("%d stacks, want %d: the others count as memory of the allocator", n, threads+1)
				}
				child.Go()
				child.Succeed()
				otherAllocator(t, d, test.allocator, numbers(t, child.Output()))
				again.Since(d) // the kernel may make pages huge meanwhile, or take pages of files
				if slices.ContainsFunc(again.Drift.Rows, func(c explain.Change) bool { return c.Size != 0 }) {
					t.Errorf("the drift of a process that waits is %+v", again.Drift)
				}
			})
		}
	}
}

// otherAllocator compares the row of an allocator with its own statistics.
func otherAllocator(t *testing.T, d *explain.Document, name string, printed map[string]uint64) {
	t.Helper()
	leads(t, d, explain.AboutAllocator)
	if !slices.Equal(d.Process.Allocators, []string{name}) || d.Heap != nil {
		t.Errorf("allocators %v, want %s; the C library's heap is %+v", d.Process.Allocators, name, d.Heap)
	}
	row := sizes(d, explain.Allocator)
	if live := printed["live"]; row.resident < live-live/10 {
		// The program counts headers as large as glibc's, which others do not have.
		t.Errorf("%d bytes are resident, the program has %d", row.resident, live)
	}
	var huge uint64 // pages that the kernel made huge may have parts that nobody touched
	for _, r := range d.Rows {
		if r.Kind == explain.Allocator {
			huge += r.Huge
		}
	}
	// jemalloc and tcmalloc count pages that were never touched as resident: theirs is a maximum.
	if n, known := printed["own_resident"]; known && (row.resident > n+huge || row.resident < n-n/10-mib) {
		t.Errorf("%d bytes are resident, %d of them in huge pages; %s knows of %d at most", row.resident, huge, name, n)
	}
	// The row also has the few pages that the loader maps. tcmalloc does not count its own structures
	// as mapped, for which it takes 8 MiB; mimalloc may have given memory back that is still mapped.
	more := map[string]uint64{"jemalloc": 0, "tcmalloc": 8 * mib, "mimalloc": 16 * mib}[name]
	const loader = 64 << 10
	if n := printed["own_mapped"]; row.size < n || row.size > n+more+loader {
		t.Errorf("%d bytes are mapped, %s knows of %d", row.size, name, n)
	}
}

// An allocator within the program is known from its functions.
func TestStaticAllocator(t *testing.T) {
	library := allocatorFile(t, "libjemalloc.a")
	child := testutil.Spawn(t, testutil.Build(t, "residence", "-pthread", library, "-lm", "-lstdc++"), "leak", "40")
	child.Ready()
	d := document(t, child.PID)
	leads(t, d, explain.AboutAllocator)
	if !slices.Contains(d.Process.Allocators, "jemalloc") || sizes(d, explain.Allocator).resident < 40*mib {
		t.Errorf("allocators %v, rows %+v", d.Process.Allocators, d.Rows)
	}
}
