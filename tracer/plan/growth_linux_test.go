package plan

import (
	"bytes"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/site"
)

// According to objdump each probed instruction is a call of the function that the plan
// names. Each is probed once, and none is in pthread_create, which is not the allocator's.
func TestGrowthCalls(t *testing.T) {
	testutil.NeedBPF(t)
	testutil.EachWidth(t, growthCalls)
}

func growthCalls(t *testing.T, build testutil.Builder) {
	child := testutil.Spawn(t, build(t, "loop"), "1", "1")
	child.Ready()
	p, err := New(Options{PID: child.PID, HeapGrowth: true, Warn: t.Errorf})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	lib := disassembled(t, p.Memory.Functions[0].Probe.Path)
	seen := map[string]bool{}
	at := map[uint64]bool{}
	for _, g := range p.Memory.Growths {
		line := lib.lines[g.addr]
		if !strings.HasPrefix(line.text, "call") && !strings.HasPrefix(line.text, "bl\t") || lib.named[line.target] != g.Function {
			t.Errorf("%#x is no call of %s but %q", g.addr, g.Function, line.text)
		}
		if line.function == "pthread_create" {
			t.Errorf("%#x is in %s", g.addr, line.function)
		}
		if at[g.addr] {
			t.Errorf("%#x is there twice", g.addr)
		}
		if lib.lines[g.Site.Addr].text == "" || g.Site.Cost < site.SingleStep {
			t.Errorf("the result at %#x is not on an instruction that can be probed", g.Site.Addr)
		}
		if g.Nested {
			t.Errorf("the call of %s at %#x is not known to be the allocator's", g.Function, g.addr)
		}
		at[g.addr], seen[g.Function] = true, true
	}
	for i := range growthModule {
		if name := growthModule[i].symbol; !seen[name] {
			t.Errorf("no call of %s", name)
		}
	}
	var text bytes.Buffer
	if err := p.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for addr := range at {
		if !strings.Contains(text.String(), fmt.Sprintf("%#x", addr)) {
			t.Errorf("no %#x in:\n%s", addr, text.String())
		}
	}
}

// disassembly is objdump's output for a library, by address.
type disassembly struct {
	lines map[uint64]disassembledLine
	named map[uint64]string // the functions of growthModule
}

type disassembledLine struct {
	text     string
	target   uint64
	function string // the last symbol before it
}

var (
	objdumpLine   = regexp.MustCompile(`^ *([0-9a-f]+):\s+(.*)$`)
	objdumpTarget = regexp.MustCompile(`^\w+(?:\.\w+)?\s+([0-9a-f]+) <`)
	objdumpSymbol = regexp.MustCompile(`^([0-9a-f]+) <([^@>]+)[^>]*>:$`)
	tableSymbol   = regexp.MustCompile(`^([0-9a-f]+) .* (\w+)$`)
)

func disassembled(t *testing.T, path string) disassembly {
	t.Helper()
	d := disassembly{lines: map[uint64]disassembledLine{}, named: map[uint64]string{}}
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	output := func(args ...string) []byte {
		out, err := exec.Command(testutil.Installed(t, "objdump"), append(args, path)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for line := range bytes.Lines(output("-T")) {
		m := tableSymbol.FindStringSubmatch(strings.TrimSpace(string(line)))
		if m == nil {
			continue
		}
		for i := range growthModule {
			if growthModule[i].symbol == m[2] {
				d.named[number(m[1])] = m[2]
			}
		}
	}
	function := ""
	for line := range bytes.Lines(output("-d", "-w", "--no-show-raw-insn")) {
		text := strings.TrimSpace(string(line))
		if m := objdumpSymbol.FindStringSubmatch(text); m != nil {
			function = m[2]
		}
		m := objdumpLine.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		x := disassembledLine{text: m[2], function: function}
		if target := objdumpTarget.FindStringSubmatch(x.text); target != nil {
			x.target = number(target[1])
		}
		d.lines[number(m[1])] = x
	}
	return d
}
