package plan

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/process"
)

// selecting is a program that prints the addresses of functions that the C library may
// select for the processor.
const selecting = `#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>
#define SHOW(f) printf("%s %p\n", #f, (void *)f)
int main(void)
{
	char c;
	SHOW(memcpy), SHOW(memmove), SHOW(mempcpy), SHOW(memset), SHOW(strcpy), SHOW(stpcpy), SHOW(strcat);
	SHOW(strncpy), SHOW(stpncpy), SHOW(strncat), SHOW(wmemset), SHOW(wcscpy);
	fflush(stdout);
	if (write(3, "ready\n", 6) != 6 || read(4, &c, 1) != 1)
		return 98;
	return 0;
}`

// The function that an IFUNC of the C library has selected in a process is among those that
// selectable finds in its code.
func TestSelectable(t *testing.T) {
	child := testutil.Spawn(t, testutil.BuildText(t, selecting))
	child.Ready()
	maps, err := proc.Maps(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(maps, func(m proc.Map) bool { return filepath.Base(m.Path) == "libc.so.6" })
	if i < 0 {
		t.Fatal("the program has no libc.so.6")
	}
	head, err := proc.ProgramHead(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	machine, err := process.MachineOf(head)
	if err != nil {
		t.Fatal(err)
	}
	child.Go()
	child.Succeed()
	f, err := symbol.Open(maps[i].Path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c := unread(machine, &library{file: f})
	compared := 0
	for line := range strings.Lines(string(child.Output())) {
		var name string
		var addr uint64
		if _, err := fmt.Sscanf(line, "%s %v", &name, &addr); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		addr -= maps[i].Start // the library's first address is 0
		sym, ok := f.Exported(name)
		if !ok {
			t.Fatalf("the library has no %s", name)
		}
		if f.IFunc(sym.Addr) {
			compared++
		}
		if all := c.selectable(sym); !slices.ContainsFunc(all, func(s symbol.Symbol) bool { return s.Addr == addr }) {
			t.Errorf("%s: the program has %#x; found are %v", name, addr, all)
		}
	}
	if compared < 2 {
		t.Errorf("%d functions are IFUNCs", compared)
	}
}
