package testutil

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// Code is the state of the code of a process, as seen from outside.
type Code struct {
	Changed []uint64 // addresses of bytes that differ from their files
	Uprobes int      // the kernel's mappings for uprobes; at most one is right
}

// CodeOf compares the executable mappings of a running process, byte by byte, with their files.
// It knows nothing about probes.
func CodeOf(t testing.TB, pid int) Code {
	t.Helper()
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer maps.Close()
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	var code Code
	compared := 0
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var start, end, offset, inode uint64
		var access, device string
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s %x %s %d", &start, &end, &access, &offset, &device, &inode); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		if strings.HasSuffix(lines.Text(), "[uprobes]") {
			code.Uprobes++
		}
		if inode == 0 || !strings.Contains(access, "x") {
			continue
		}
		// Open the mapped file itself, whatever has its name by now.
		file, err := os.Open(fmt.Sprintf("/proc/%d/map_files/%x-%x", pid, start, end))
		if err != nil {
			t.Fatal(err)
		}
		want, got := make([]byte, end-start), make([]byte, end-start)
		n, _ := file.ReadAt(want, int64(offset)) // the file may end before the mapping does
		file.Close()
		if _, err := memory.ReadAt(got, int64(start)); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		for i := range n {
			if got[i] != want[i] {
				code.Changed = append(code.Changed, start+uint64(i))
			}
		}
		compared += n
	}
	if err := lines.Err(); err != nil || compared == 0 {
		t.Fatalf("%d bytes of code compared: %v", compared, err)
	}
	return code
}

// BecomesOriginal waits until the code of a process equals its files. The test fails if that
// takes minutes.
func BecomesOriginal(t testing.TB, pid int) {
	t.Helper()
	code := CodeOf(t, pid)
	for began := time.Now(); time.Since(began) < enough; {
		if len(code.Changed) == 0 {
			break
		}
		waitGrace()
		code = CodeOf(t, pid)
	}
	code.Original(t)
}

// Original fails the test unless the code of a process equals its files. Only the kernel's page
// for uprobes may be left.
func (c Code) Original(t testing.TB) {
	t.Helper()
	if len(c.Changed) > 0 || c.Uprobes > 1 {
		t.Errorf("changed bytes at %#x, %d mappings for uprobes; want none and one at most", c.Changed, c.Uprobes)
	}
}
