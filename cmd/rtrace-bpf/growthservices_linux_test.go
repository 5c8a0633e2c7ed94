package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// Scripts that keep about 1 MiB more for each line that they read.
const (
	pythonGrows = `import sys
kept = []
for line in sys.stdin:
    kept.append([str(i) * 5 for i in range(15000)])
    print(flush=True)`
	nodeGrows = `const kept = [];
require('readline').createInterface({ input: process.stdin }).on('line', () => {
  for (let i = 0; i < 5000; i++) kept.push({ i, text: 'x' + i });
  kept.push(Buffer.alloc(1 << 19, 1));
  console.log();
});`
	javaGrows = `import java.io.*;
import java.nio.ByteBuffer;
import java.util.*;

public class Grows {
	static List<Object> kept = new ArrayList<>();

	public static void main(String[] args) throws Exception {
		BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
		while (in.readLine() != null) {
			for (int i = 0; i < 100; i++) kept.add(new byte[5000]);
			kept.add(ByteBuffer.allocateDirect(1 << 19));
			System.out.println();
		}
	}
}
`
	goGrows = `package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
)

var kept [][]byte

func main() {
	for in := bufio.NewScanner(os.Stdin); in.Scan(); fmt.Println() {
		for range 250 {
			kept = append(kept, bytes.Repeat([]byte{1}, 4000))
		}
	}
}
`
)

// sourceIn writes a file into a new folder.
func sourceIn(t *testing.T, name, text string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

// compile runs a compiler.
func compile(t *testing.T, program string, args ...string) {
	t.Helper()
	if out, err := exec.Command(testutil.Installed(t, program), args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// growsBy has a service work while its growth is recorded. What RSS grows by, as the kernel has
// it, must be in the trace, and at least 95 % of that with a stack.
func (s *service) growsBy(t *testing.T, work int) {
	t.Helper()
	r := start(t, s.Child, "-e", "growth", "-o", "trace")
	before := rssOf(t, s.PID)
	s.work(work)
	after := rssOf(t, s.PID)
	r.Signal(syscall.SIGINT)
	r.ends(cli.OK)
	records := load(t, filepath.Join(r.dir, "trace"))
	sum, stackless := residentBytes(t, records), residentBytes(t, withoutStack(records))

	// Collectors and compilers of these programs work in threads of their own, before and after.
	growth, slack := after-before, uint64(4<<20)
	if growth < uint64(work)<<19 {
		t.Fatalf("RSS grew by %d bytes only", growth)
	}
	if sum+growth/20+slack < growth {
		t.Errorf("the trace has %d bytes, RSS grew by %d\n%s", sum, growth, r.Stderr())
	}
	if stackless*20 > sum {
		t.Errorf("%d of %d bytes have no stack\n%s", stackless, sum, r.Stderr())
	}
}

// withoutStack returns the blocks of a trace that no stack is known for, and the ends of these.
func withoutStack(records []*trace.Record) (kept []*trace.Record) {
	stackless := map[uint64]bool{}
	for _, r := range records {
		if r.Kind != trace.KindCall {
			continue
		}
		if r.Call.Op != trace.OpFree {
			stackless[r.Call.ID] = len(r.Call.Stack.Frames) == 0
		}
		if stackless[r.Call.ID] {
			kept = append(kept, r)
		}
	}
	return kept
}

// What programs with heaps of their own grow by has stacks: no allocator has to be known.
func TestGrowthOfServices(t *testing.T) {
	testutil.Extra(t, "python3, node, java, go and jemalloc")
	testutil.NeedBPF(t)
	t.Run("python3", func(t *testing.T) {
		t.Parallel()
		startService(t, "", "python3", "-c", pythonGrows).growsBy(t, 40)
	})
	t.Run("python3 with jemalloc", func(t *testing.T) {
		t.Parallel()
		if testutil.GuestLacks("rg") { // which is installed together with the allocators
			t.Skip("SKIPPED-GUEST: this virtual machine was made without jemalloc (vmtest --userland)")
		}
		s := startService(t, "", "env", "LD_PRELOAD=libjemalloc.so.2", "PYTHONMALLOC=malloc", testutil.Installed(t, "python3"), "-c", pythonGrows)
		if maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", s.PID)); err != nil || !bytes.Contains(maps, []byte("libjemalloc")) {
			t.Fatalf("jemalloc is not loaded (make need-test-all installs it): %v", err)
		}
		s.growsBy(t, 40)
	})
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		startService(t, "", "node", "-e", nodeGrows).growsBy(t, 40)
	})
	t.Run("java", func(t *testing.T) {
		t.Parallel()
		dir, path := sourceIn(t, "Grows.java", javaGrows)
		compile(t, "javac", "-d", dir, path)
		startService(t, "", "java", "-Xmx256m", "-XX:MaxDirectMemorySize=1g", "-cp", dir, "Grows").growsBy(t, 60)
	})
	t.Run("go", func(t *testing.T) {
		t.Parallel()
		dir, path := sourceIn(t, "grows.go", goGrows)
		compile(t, "go", "build", "-o", dir+"/grows", path)
		startService(t, "", dir+"/grows").growsBy(t, 60)
	})
}
