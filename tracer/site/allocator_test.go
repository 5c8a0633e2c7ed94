package site

import (
	"debug/elf"
	"testing"
)

// allocator lists the functions that a tracer of memory probes, with what it needs from their
// calls.
var allocator = map[string]Function{
	"malloc":         {Args: []int{0}, Return: true},
	"calloc":         {Args: []int{1, 0}, Factors: [2]int{1, 0}, Return: true},
	"realloc":        {Args: []int{1, 0}, Return: true},
	"reallocarray":   {Args: []int{2, 1, 0}, Factors: [2]int{2, 1}, Return: true},
	"free":           {Args: []int{0}, SkipNull: true},
	"posix_memalign": {Args: []int{2, 0}, Return: true},
	"aligned_alloc":  {Args: []int{1}, Return: true},
	"memalign":       {Args: []int{1}, Return: true},
	"valloc":         {Args: []int{0}, Return: true},
	"pvalloc":        {Args: []int{0}, Return: true},
}

// TestLibcAllocator checks that each function of the C library's allocator has a site, and prints
// the sites.
func TestLibcAllocator(t *testing.T) { forLibcs(t, testLibcAllocator) }

func testLibcAllocator(t *testing.T, l *libc) {
	var symbols []elf.Symbol
	var entries []uint64
	for _, s := range l.symbols {
		if _, ok := allocator[s.Name]; ok {
			symbols, entries = append(symbols, s), append(entries, s.Value)
		}
	}
	incoming := Branches(l.arch, l.text, l.base, entries)
	found := map[string]bool{}
	for _, s := range symbols {
		f := l.function(s)
		want := allocator[s.Name]
		f.Args, f.Factors, f.Return, f.SkipNull, f.Incoming = want.Args, want.Factors, want.Return, want.SkipNull, incoming
		got, err := Choose(Options{Arch: l.arch}, f)
		if err != nil {
			t.Error(err)
			continue
		}
		found[s.Name] = true
		t.Logf("%-14s +%-2d %-11v %-24s %v", s.Name, got.Offset, got.Cost, got.Insn, got.Args)
		if l.arch == I386 && got.Cost < Emulated {
			t.Errorf("%s: %v, although functions of i386 begin with a push", s.Name, got.Cost)
		}
	}
	for name := range allocator {
		if !found[name] {
			t.Errorf("%s is not found", name)
		}
	}
}
