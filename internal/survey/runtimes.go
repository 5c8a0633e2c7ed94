package survey

import (
	"fmt"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/linux/proc"
)

// Addresses that runtimes choose.
const (
	// Go takes the heap in multiples of 4 MiB from arenas of 64 MiB (runtime/malloc.go). Since
	// Go 1.26 their address is random.
	goChunk = 1 << 22
	// The heap of a JVM with compressed references is below 32 GiB.
	javaEnd = 1 << 35
	// V8 aligns the chunks of its heap (kRegularPageSize, 256 KiB).
	v8Chunk = 1 << 18
	// Python's allocator takes arenas of 256 KiB until 3.9, then 1 MiB.
	pythonArena = 1 << 18
)

// dotnetCode is the row of .NET's compiled code.
const dotnetCode = ".NET: compiled code and its structures"

// labelOfAnonymous returns the row of a private anonymous mapping, of what is left of it when
// malloc's memory and stacks are recognised.
func (id *identity) labelOfAnonymous(a *area) (label, string) {
	part := fmt.Sprintf("%#x-%#x %s", a.Start, a.End, a.Perms)
	code := a.Perms&proc.Exec != 0
	switch {
	case id.is("jvm") && a.End <= javaEnd && !code:
		return label{explain.Managed, "Java heap", "mappings", "anonymous memory below 32 GiB in a process with libjvm.so"}, part
	case id.is("jvm"):
		return label{explain.Runtime, "JVM: metaspace, compiled code, tables of the collector", "mappings", "other anonymous memory of a process with libjvm.so; a heap above 32 GiB counts here"}, part
	case id.is("dotnet") && code:
		return label{explain.Runtime, dotnetCode, "mappings", "executable anonymous memory of a process with .NET"}, part
	case id.is("dotnet"):
		return label{explain.Managed, ".NET heap and structures", "mappings", "anonymous memory of a process with .NET"}, part
	case id.is("go") && a.Start%goChunk == 0 && a.End%goChunk == 0:
		return label{explain.Managed, "Go heap", "mappings", "anonymous memory in multiples of 4 MiB in a Go program"}, part
	case id.is("v8") && !code && a.Start%v8Chunk == 0:
		return label{explain.Managed, "V8 heap", "mappings", "anonymous memory aligned to 256 KiB in a process with V8"}, part
	case id.is("v8") && code:
		return label{explain.Runtime, "V8: compiled code", "mappings", "executable anonymous memory of a process with V8"}, part
	case len(id.allocators) > 0:
		return label{explain.Allocator, id.allocators[0], "mappings", "anonymous memory of a process that uses " + id.allocators[0]}, part
	case id.is("go"):
		return label{explain.Runtime, "Go runtime's own memory", "mappings", "other anonymous memory of a Go program"}, part
	case id.is("python") && a.End-a.Start >= pythonArena:
		return label{explain.Managed, "Python's object arenas", "mappings", "anonymous memory of 256 KiB and more in a process with Python"}, part
	}
	return ofAnonymous, part
}
