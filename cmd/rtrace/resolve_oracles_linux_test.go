package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/internal/symbol"
)

// symbolizer asks a tool like addr2line for the frames of addresses, and returns them as
// rtrace prints them, by address.
func symbolizer(t *testing.T, path string, addrs []uint64, args ...string) map[uint64]string {
	t.Helper()
	var in strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	lines := strings.Split(strings.TrimSpace(tool(t, in.String(), append(args, "-e", path)...)), "\n")
	all := map[uint64]string{}
	var at uint64
	for i := 0; i < len(lines); i++ {
		if strings.HasPrefix(lines[i], "0x") {
			if _, err := fmt.Sscanf(lines[i], "0x%x", &at); err != nil {
				t.Fatal(err)
			}
			continue
		}
		place, _, _ := strings.Cut(lines[i+1], " (discriminator")
		name, mangled := symbol.Source(lines[i])
		if !mangled {
			name += "()"
		}
		if all[at] != "" {
			all[at] += frametext.InlinedBy
		}
		all[at] += name + " at " + filepath.Base(place)
		i++
	}
	return all
}

// TestResolveOracles compares the texts of all frames that may come from a call with the
// results of addr2line, llvm-symbolizer and gdb, for files linked in different ways and
// mappings described in both ways.
func TestResolveOracles(t *testing.T) {
	for _, flags := range [][]string{{"-pie", "-fPIE"}, {"-no-pie"}, {"-gdwarf-4", "-gz"}, {"-Wl,-z,noseparate-code"}} {
		c := compileText(t, filepath.Join(t.TempDir(), "prog"), inlineSource, flags...)
		bias := uint64(0x555555554000)
		if slices.Contains(flags, "-no-pie") {
			bias = 0
		}
		var addrs []uint64
		for a := c.text.Addr; a < c.text.Addr+c.text.Size; a++ {
			addrs = append(addrs, a)
		}
		gnu := symbolizer(t, c.path, addrs, "addr2line", "-a", "-f", "-i")
		llvm := symbolizer(t, c.path, addrs, "llvm-symbolizer", "-a", "--no-demangle", "--output-style=GNU")
		start := bias + c.code.Vaddr&^0xfff
		end := bias + toPage(c.code.Vaddr+c.code.Filesz)
		for _, from := range []uint64{start, bias} { // of sp-rtrace, of rtrace-bpf
			if bias == 0 {
				from = start
			}
			var in strings.Builder
			fmt.Fprintf(&in, "version=2.0, pid=7, filter=resolve, \n: %s => %#x-%#x\n1. malloc(1) = 0x5\n", c.path, from, end)
			for _, a := range addrs {
				fmt.Fprintf(&in, "\t%#x\n", bias+a+1)
			}
			out, errOut, code := runRtrace(in.String()+"\n", "resolve")
			frames := resolvedFrame.FindAllStringSubmatch(out, -1)
			if code != cli.OK || errOut != "" || len(frames) != len(addrs) {
				t.Fatalf("%v: exit code %d, %q, %d frames of %d", flags, code, errOut, len(frames), len(addrs))
			}
			both, inlined := 0, 0
			for i, a := range addrs {
				if gnu[a] != llvm[a] || strings.Contains(gnu[a], "?") || strings.Contains(gnu[a], ":0") {
					continue
				}
				both++
				if strings.Contains(gnu[a], frametext.InlinedBy) {
					inlined++
				}
				if frames[i][2] != gnu[a] {
					t.Errorf("%v: %#x is %q, both others say %q", flags, a, frames[i][2], gnu[a])
				}
			}
			t.Logf("%v from %#x: %d addresses, of which both others agree on %d, %d with inlined functions", flags, from, len(addrs), both, inlined)
			if both < 100 || inlined < 20 {
				t.Errorf("%v: too few to compare", flags)
			}
			askGDB(t, c, addrs, frames)
		}
	}
}

// callEnds returns the addresses after the calls of a program, which are the frames of
// stacks.
func callEnds(t *testing.T, path string) (ends []uint64) {
	t.Helper()
	call := regexp.MustCompile(`^ +([0-9a-f]+):.*\tcall `)
	next := regexp.MustCompile(`^ +([0-9a-f]+):`)
	waiting := false
	for line := range strings.Lines(tool(t, "", "objdump", "-d", "--no-show-raw-insn", path)) {
		if m := next.FindStringSubmatch(line); m != nil && waiting {
			var at uint64
			if _, err := fmt.Sscanf(m[1], "%x", &at); err != nil {
				t.Fatal(err)
			}
			ends = append(ends, at)
		}
		waiting = call.MatchString(line)
	}
	return ends
}

// askGDB compares the lines of frames with those of gdb, which prints the line of an
// address.
func askGDB(t *testing.T, c compiled, addrs []uint64, frames [][]string) {
	t.Helper()
	var script strings.Builder
	ends := callEnds(t, c.path)
	for _, a := range ends {
		fmt.Fprintf(&script, "info line *%#x\n", a-1)
	}
	name := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(name, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	said := strings.Split(strings.TrimSpace(tool(t, "", "gdb", "-nx", "-batch", "-x", name, c.path)), "\n")
	if len(said) != len(ends) {
		t.Fatalf("gdb says %d lines of %d addresses", len(said), len(ends))
	}
	line := regexp.MustCompile(`^Line ([0-9]+) of "([^"]*)" (starts|is) at address`)
	compared := 0
	for i, end := range ends {
		at, found := slices.BinarySearch(addrs, end-1)
		m := line.FindStringSubmatch(said[i])
		if m == nil || !found {
			continue
		}
		inner, _ := frametext.Outer(frames[at][2])
		compared++
		if p := frametext.Parse(inner); fmt.Sprint(p.Line) != m[1] || p.File != filepath.Base(m[2]) {
			t.Errorf("%#x is %q, gdb says %s", end, frames[at][2], said[i])
		}
	}
	t.Logf("%d calls compared with gdb", compared)
	if compared < 6 {
		t.Errorf("gdb knows only %d lines", compared)
	}
}
