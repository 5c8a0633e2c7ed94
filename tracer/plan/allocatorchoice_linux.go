package plan

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"rtrace-bpf/tracer/process"
)

// choice is which allocators the options select, and how they are found.
type choice struct {
	kinds    []string          // kinds in Options.Allocators
	prefixes []string          // prefixes to look for
	wanted   []string          // prefixes in Options.Allocators
	library  os.FileInfo       // of path; nil if it cannot be found from here
	path     string            // Options.Library
	symbols  map[string]uint64 // Options.Symbols
	used     bool              // a file was found that symbols belong to
}

// prefixName precedes a prefix among the names of allocators.
const prefixName = "prefix:"

func newChoice(o *Options) *choice {
	c := &choice{path: o.Library, symbols: o.Symbols, prefixes: slices.Clone(prefixes)}
	for _, name := range o.Allocators {
		if prefix, ok := strings.CutPrefix(name, prefixName); ok {
			c.wanted = append(c.wanted, prefix)
			c.look(prefix)
		} else {
			c.kinds = append(c.kinds, name)
		}
	}
	for name := range o.Symbols {
		prefix, _ := splitName(name) // checked by Options.Check
		c.look(prefix)
	}
	if c.path != "" {
		c.library, _ = os.Stat(c.path) // in another mount namespace only the name is compared
	}
	return c
}

// look adds a prefix to those to look for.
func (c *choice) look(prefix string) {
	if !slices.Contains(c.prefixes, prefix) {
		c.prefixes = append(c.prefixes, prefix)
	}
}

// splitName returns what precedes the name of a function of C's allocator in name. ok is
// false if name does not end in such a name.
func splitName(name string) (prefix string, ok bool) {
	length := 0
	for i := range MemoryModule {
		if symbol := MemoryModule[i].Symbol; strings.HasSuffix(name, symbol) {
			length = max(length, len(symbol))
		}
	}
	return name[:len(name)-length], length > 0
}

// checkAllocators returns an error for an unknown allocator in Options.Allocators, or a name
// in Options.Symbols that no function of an allocator has.
func (o *Options) checkAllocators() error {
	for _, name := range o.Allocators {
		prefix, ok := strings.CutPrefix(name, prefixName)
		if ok && prefix == "" || !ok && !slices.Contains(AllocatorKinds(), name) {
			return fmt.Errorf("unknown allocator %q: it is one of %s or %sPREFIX", name, strings.Join(AllocatorKinds(), ", "), prefixName)
		}
	}
	for name := range o.Symbols {
		if _, ok := splitName(name); !ok {
			return fmt.Errorf("%q is not a function of an allocator, such as malloc or je_malloc", name)
		}
	}
	return nil
}

// ChoosesNothing reports whether the options select no allocator, so that choice.decide's
// rules select them.
func (o *Options) ChoosesNothing() bool {
	return len(o.Allocators) == 0 && o.Library == "" && len(o.Symbols) == 0
}

// prepare sets how functions are looked for in a file. Local symbols count in the program,
// which can call them itself, and if the user named the file or a prefix. Options.Symbols
// are addresses in Options.Library, or else in the program.
func (c *choice) prepare(l *library) {
	l.local = l.program || c.names(l) || len(c.wanted) > 0
	if len(c.symbols) > 0 && (c.names(l) || c.path == "" && l.program) {
		l.given, c.used = c.symbols, true
	}
}

// names reports whether a file is Options.Library.
func (c *choice) names(l *library) bool {
	if c.path == "" {
		return false
	}
	if l.mapping.Path == c.path {
		return true
	}
	info, err := os.Stat(l.path)
	return err == nil && c.library != nil && os.SameFile(info, c.library)
}

// decide reports whether an allocator is traced, and why.
//
// If the options select none, three kinds are traced: allocators that serve functions of C;
// the C library's allocator below them, which calls still reach by its other names, from
// libraries that look for symbols in their own dependencies first, and through wrappers; and
// allocators with a prefix. A call that goes through several of them counts once, and a
// probe that is never hit costs nothing.
func (c *choice) decide(a *Allocator) (traced bool, why string) {
	switch {
	case c.names(a.lib):
		return true, "chosen by its file"
	case slices.Contains(c.kinds, a.Kind), a.Prefix != "" && slices.Contains(c.wanted, a.Prefix):
		return true, "chosen by its name"
	case len(c.kinds) > 0, len(c.wanted) > 0, c.path != "":
		return false, "not chosen"
	case len(a.Serves) > 0 && a.lib.guessed:
		return true, "serves, judging by its name, " + strings.Join(a.Serves, ", ")
	case len(a.Serves) > 0:
		return true, "serves " + strings.Join(a.Serves, ", ")
	case a.dialect != nil && a.dialect.libc:
		return true, "is the C library's, below others"
	case a.Prefix != "":
		return true, "has names of its own"
	}
	return false, "others serve"
}

// check returns an error if the options select an allocator, a file or functions that the
// process does not have.
func (c *choice) check(t *process.Target, found []Allocator) error {
	var has []string
	for i := range found {
		if name := found[i].Name(); !slices.Contains(has, name) {
			has = append(has, name)
		}
	}
	missing := func(what string) error {
		return fmt.Errorf("process %d (%s) has no %s: it has %s", t.PID, t.Name, what,
			strings.Join(append(has, "no others")[:max(len(has), 1)], ", "))
	}
	have := func(is func(a *Allocator) bool) bool {
		return slices.ContainsFunc(found, func(a Allocator) bool { return is(&a) })
	}
	for _, kind := range c.kinds {
		if !have(func(a *Allocator) bool { return a.Kind == kind }) {
			return missing("allocator " + kind)
		}
	}
	for _, prefix := range c.wanted {
		if !have(func(a *Allocator) bool { return a.Prefix == prefix }) {
			return missing("functions " + prefix + "malloc and " + prefix + "free")
		}
	}
	if c.path != "" && !have(func(a *Allocator) bool { return c.names(a.lib) }) {
		return missing("allocator in " + c.path)
	}
	for name := range c.symbols {
		prefix, _ := splitName(name)
		if !c.used || !have(func(a *Allocator) bool { return a.Prefix == prefix && a.lib.given != nil }) {
			return missing("functions " + prefix + "malloc and " + prefix + "free, whose addresses must both be given")
		}
	}
	return nil
}

// Name returns the allocator's name for messages: its kind, with the prefix if it has one.
func (a *Allocator) Name() string {
	switch {
	case a.Kind != "" && a.Prefix != "":
		return a.Kind + " (" + a.Prefix + ")"
	case a.Prefix != "":
		return prefixName + a.Prefix
	case a.Kind == "":
		return "malloc of an unknown kind"
	}
	return a.Kind
}
