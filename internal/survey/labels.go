package survey

import (
	"strings"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/linux/proc"
)

// Labels of rows that are known from a mapping's name.
var (
	ofProgram   = label{kind: explain.Program, what: "program: code and data", unit: "mappings"}
	ofLibraries = label{kind: explain.Libraries, what: "libraries: code and data", unit: "mappings"}
	ofFiles     = label{kind: explain.Files, what: "page cache of mapped files", unit: "mappings"}
	ofShared    = label{kind: explain.SharedMemory, what: "shared memory and tmpfs", unit: "mappings"}
	ofStacks    = label{kind: explain.Stacks, what: "stacks", unit: "stacks"}
	ofHugetlb   = label{kind: explain.Hugetlb, what: "pages of hugetlbfs, not part of RSS", unit: "mappings"}
	ofKernel    = label{kind: explain.Kernel, what: "pages of the kernel (vdso, ...)", unit: "mappings"}
	ofDevices   = label{kind: explain.Other, what: "devices and other mappings", unit: "mappings", why: "mappings of devices have no known use"}
	ofBreak     = label{kind: explain.Break, what: "program break ([heap])", unit: "mappings"}
	ofAnonymous = label{kind: explain.Anonymous, what: "anonymous mappings", unit: "mappings"}
	ofSwapped   = label{kind: explain.Other, what: "memory of malloc and stacks that is swapped out", unit: "mappings"}
	ofChanges   = label{kind: explain.Other, what: "changed while it was read", unit: "mappings", why: "the pages of a mapping and its size did not match"}
)

// labelOf returns the row of a mapping, and the name of its part.
func (id *identity) labelOf(a *area) (label, string) {
	m := &a.Map
	switch {
	case a.Hugetlb > 0, strings.HasPrefix(m.Path, "/anon_hugepage"):
		return ofHugetlb, ""
	case strings.HasPrefix(m.Path, doubleMapper):
		return label{explain.Runtime, dotnetCode, "mappings", ""}, ""
	case strings.HasPrefix(m.Path, "/memfd:java_heap"):
		return label{explain.Managed, "Java heap", "mappings", ""}, ""
	case m.Path == "[heap]":
		return id.labelOfBreak(), ""
	case strings.HasPrefix(m.Path, "[stack"):
		return ofStacks, m.Path
	case strings.HasPrefix(m.Path, "[anon_shmem:"):
		return ofShared, m.Path
	case strings.HasPrefix(m.Path, "[anon:"):
		return id.labelOfNamed(a)
	case strings.HasPrefix(m.Path, "["):
		return ofKernel, m.Path
	case m.Path == "" && m.Perms&proc.Shared == 0:
		return id.labelOfAnonymous(a)
	case m.Path == "", inShared(m.Path), id.tmpfs[[2]uint32{m.Major, m.Minor}] && !id.code[inodeOf(m)]:
		return ofShared, partOf(m)
	case inodeOf(m) == id.exe:
		return ofProgram, ""
	case id.code[inodeOf(m)]:
		return ofLibraries, m.Path
	case strings.HasPrefix(m.Path, "/dev/"), !m.File():
		return ofDevices, m.Path
	}
	return ofFiles, m.Path
}

// partOf returns the name of a shared mapping.
func partOf(m *proc.Map) string {
	if m.Path == "" {
		return "without a name"
	}
	return m.Path
}

// inShared reports whether a name is one of the kernel's for shared memory: of memfd_create, of
// System V segments, and of anonymous shared mappings.
func inShared(name string) bool {
	return strings.HasPrefix(name, "/memfd:") || strings.HasPrefix(name, "/SYSV") || name == "/dev/zero"
}

func (id *identity) labelOfBreak() label {
	for _, a := range id.allocators {
		return label{explain.Allocator, a, "mappings", "memory of brk that the C library's malloc does not use"}
	}
	return ofBreak
}

// names are the beginnings of names that programs give to their mappings (PR_SET_VMA_ANON_NAME).
var names = []struct {
	prefix string
	label  label
}{
	{"[anon: Go: heap", label{explain.Managed, "Go heap", "mappings", ""}},
	{"[anon: Go:", label{explain.Runtime, "Go runtime's own memory", "mappings", ""}},
	{"[anon:v8", label{explain.Managed, "V8 heap", "mappings", ""}},
	{"[anon:jemalloc", label{explain.Allocator, "jemalloc", "mappings", ""}},
	{"[anon:scudo", label{explain.Allocator, "scudo", "mappings", ""}},
	{"[anon:mimalloc", label{explain.Allocator, "mimalloc", "mappings", ""}},
	{"[anon:tcmalloc", label{explain.Allocator, "tcmalloc", "mappings", ""}},
}

// labelOfNamed returns the row of a private mapping with a name.
func (id *identity) labelOfNamed(a *area) (label, string) {
	for _, n := range names {
		if strings.HasPrefix(a.Path, n.prefix) {
			return n.label, a.Path
		}
	}
	l, _ := id.labelOfAnonymous(a)
	return l, a.Path
}
