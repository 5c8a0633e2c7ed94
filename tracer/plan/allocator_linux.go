package plan

import (
	"fmt"
	"slices"

	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/process"
)

// Allocator is a set of functions in one file that have the same prefix.
type Allocator struct {
	Kind   string // one of AllocatorKinds(); "" if it is none of them
	Prefix string // of the functions' names; "" for the names of C
	Path   string // the file, as the process names it
	// Serves lists the functions of C that it serves: calls by these names reach this
	// file's definition.
	Serves []string
	Traced bool
	Why    string // the reason why it is traced or not

	lib     *library
	dialect *dialect
}

// Limits on the files with allocators in a process.
const (
	maxAllocators = 64                               // files that are looked at
	maxTexts      = len(object.ProbeProcess{}.Texts) // files that can be probed
)

// allocatorsOf lists the allocators that a file defines. served has the functions of C that
// an earlier file serves; those that this file serves are added.
func allocatorsOf(l *library, prefixes []string, served map[string]bool) []Allocator {
	var found []Allocator
	for _, prefix := range prefixes {
		_, malloc := l.function(prefix + "malloc")
		_, free := l.function(prefix + "free")
		if !malloc || !free && !freeless(l, prefix) {
			continue
		}
		a := Allocator{Prefix: prefix, Path: l.mapping.Path, lib: l, dialect: recognise(l, prefix)}
		if a.dialect != nil {
			a.Kind = a.dialect.kind
		}
		if prefix == "" && l.linked {
			a.Serves = serving(l, served)
		}
		found = append(found, a)
	}
	return found
}

// freeless reports whether a file may have an allocator without free. In a static program
// with a C library that links each function separately, such as musl, free is missing if
// the program never calls it. In any other file, a malloc without a free is no allocator.
func freeless(l *library, prefix string) bool {
	return prefix == "" && l.program && l.file.Alone()
}

// warnOfFreeless warns of traced allocators that have no free.
func warnOfFreeless(all []Allocator, warn func(format string, args ...any)) {
	for i := range all {
		a := &all[i]
		if _, free := a.lib.function(a.Prefix + "free"); a.Traced && !free {
			warn("%s is static and has malloc but no free: its allocations are traced, and nothing that it allocates is ever freed", a.Path)
		}
	}
}

// serving lists the functions of C that a file defines and no earlier one does, and adds
// them to served.
func serving(l *library, served map[string]bool) []string {
	var names []string
	for i := range MemoryModule {
		name := MemoryModule[i].Symbol
		if _, ok := l.function(name); ok && !served[name] {
			served[name] = true
			names = append(names, name)
		}
	}
	return names
}

// tracedLibraries lists the files of traced allocators, at most maxTexts. Files with allocators that
// serve functions of C come first; allocators in files beyond the limit are not traced.
func tracedLibraries(all []Allocator, warn func(format string, args ...any)) []*library {
	var texts []*library
	for _, serves := range []bool{true, false} {
		for i := range all {
			a := &all[i]
			if !a.Traced || serves != (len(a.Serves) > 0) || slices.Contains(texts, a.lib) {
				continue
			}
			if len(texts) == maxTexts {
				a.Traced, a.Why = false, fmt.Sprintf("more than %d files", maxTexts)
				warn("the allocator of %s is not traced: at most %d files with allocators can be", a.Path, maxTexts)
				continue
			}
			texts = append(texts, a.lib)
		}
	}
	return texts
}

// functionsOf lists the functions of the traced allocators in a file. Several names of one
// address are one function with aliases. wholeArguments is Options.Args.
func functionsOf(allocators []Allocator, l *library, wholeArguments bool) []Function {
	var all []Function
	byAddress := map[uint64]int{}
	several := countTraced(allocators) > 1
	for i := range allocators {
		a := &allocators[i]
		if !a.Traced || a.lib != l {
			continue
		}
		// A known allocator reaches another one only if its function calls a function of C
		// by name. An unknown one may wrap another, so even its free is open until it
		// returns.
		wraps := a.dialect == nil && several
		for n, r := range functionRows(a.dialect, a.Prefix) {
			name := a.Prefix + r.Symbol
			sym, ok := l.function(name)
			if !ok {
				continue
			}
			if at, ok := byAddress[sym.Addr]; ok {
				all[at].Aliases = append(all[at].Aliases, name)
				continue
			}
			byAddress[sym.Addr] = len(all)
			sym.IFunc = l.file.IFunc(sym.Addr)
			all = append(all, Function{
				Name: name, row: r, Returns: r.returns() || wraps, symbol: sym, known: a.dialect != nil,
				optional: a.Prefix != "" || n >= len(MemoryModule), wraps: wraps,
				calls: several && r.composed(), wholeArguments: wholeArguments,
			})
		}
	}
	return all
}

// countTraced returns the number of allocators that are traced.
func countTraced(all []Allocator) int {
	n := 0
	for i := range all {
		if all[i].Traced {
			n++
		}
	}
	return n
}

// hasNamesOfC reports whether a file has a traced allocator with the names of C. C++
// operators of such a file may allocate themselves. Operators of other files call an
// allocator.
func hasNamesOfC(all []Allocator, file process.FileID) bool {
	return slices.ContainsFunc(all, func(a Allocator) bool {
		return a.Traced && a.Prefix == "" && a.lib.id() == file
	})
}
