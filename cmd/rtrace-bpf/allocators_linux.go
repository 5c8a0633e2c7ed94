package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/tracer"
)

// allocatorConfig is what of the allocators is traced.
type allocatorConfig struct {
	names   []string
	library string
	symbols symbols
}

func (c *allocatorConfig) declare(f *pflag.FlagSet) {
	f.StringArrayVar(&c.names, "allocator", nil, "trace only the allocator `NAME`: "+strings.Join(tracer.AllocatorKinds(), ", ")+
		", or prefix:P for functions called Pmalloc, Pfree and so on; may be repeated (default: what serves the process, the C library's, and those with known prefixes)")
	flags.Offer(f, "allocator", tracer.AllocatorKinds()...)
	f.StringVar(&c.library, "library", "", "trace only the allocator that the mapped file `PATH` defines")
	f.Var(&c.symbols, "symbol", "an allocator's function whose name the program, or the file of --library, has lost: `NAME=ADDR` with the address as nm prints it; may be repeated")
}

func (c *allocatorConfig) set(o *tracer.Options) {
	o.Allocators, o.Library, o.Symbols = c.names, c.library, c.symbols
}

// symbols are addresses of functions, given as NAME=ADDR.
type symbols map[string]uint64

var _ pflag.Value = (*symbols)(nil)

// Set adds a function. Its address is hexadecimal, with or without 0x.
func (s *symbols) Set(text string) error {
	name, digits, ok := strings.Cut(text, "=")
	addr, err := strconv.ParseUint(strings.TrimPrefix(digits, "0x"), 16, 64)
	if !ok || name == "" || err != nil || addr == 0 {
		return &flags.ValueError{Wrong: "not a function and its address", Write: "one as malloc=401136, the address in hexadecimal"}
	}
	if *s == nil {
		*s = symbols{}
	}
	if old, ok := (*s)[name]; ok && old != addr {
		return fmt.Errorf("%s is at %x or at %x, not at both", name, old, addr)
	}
	(*s)[name] = addr
	return nil
}

// String returns what was set.
func (s *symbols) String() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(*s)) {
		all = append(all, fmt.Sprintf("%s=%x", name, (*s)[name]))
	}
	return strings.Join(all, " ")
}

// Type names the kind of value for pflag.
func (s *symbols) Type() string { return "symbol" }
