package trace

import "fmt"

// Kind is what a Record describes. It selects the payload field that is set.
type Kind uint8

// The kinds of records. Their names (see [Kind.String]) are part of the jsonl
// format and never change.
const (
	KindNone         Kind = iota // the zero Record; never read or written
	KindHeader                   // what was recorded, how, on which machine; the first record
	KindProcess                  // a traced process and when its tracing began
	KindThread                   // the name of a thread
	KindTracerModule             // a tracing module that was active (sp-rtrace MINF)
	KindResource                 // a kind of resource that calls refer to
	KindContext                  // a named phase of the program, or a mark set by the user
	KindModule                   // a file that is mapped executable: build-id, load base
	KindMapping                  // an executable mapping appeared
	KindUnmapping                // an executable mapping was removed
	KindCall                     // a resource was allocated, freed or moved
	KindHeapGrow                 // the allocator got memory from the system (MTRC H, I)
	KindHeapInfo                 // state of the allocator (sp-rtrace HINF)
	KindAttachment               // a file that belongs to the trace (sp-rtrace FILE)
	KindComment                  // free text, kept where the format has a place for it
	KindExec                     // the process replaced its program: mappings and blocks are void
	KindExit                     // a thread or the whole process ended
	KindLost                     // events are missing: how many, why
	KindOpaque                   // a packet that only one format understands, kept byte for byte
	KindFunction                 // the code at some addresses has a name
	KindSample                   // a stack that a sampler found
	KindEvent                    // another event, as its source describes it
	KindRSS                      // how much of a process's memory is resident: at the start and at the end of its recording
	KindWindow                   // calls from here on stand for more calls than themselves
	KindCost                     // what recording cost the process; one before the end
	KindEnd                      // the trace ended as planned; the last record
	kindCount
)

var kindNames = [kindCount]string{
	"none", "header", "process", "thread", "tracermodule", "resource", "context",
	"module", "mapping", "unmapping", "call", "heapgrow", "heapinfo", "attachment", "comment",
	"exec", "exit", "lost", "opaque", "function", "sample", "event", "rss", "window", "cost", "end",
}

// String returns the kind's name in lower case, as the jsonl format spells it.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// ParseKind returns the kind with the given name.
func ParseKind(name string) (Kind, bool) {
	for k, n := range kindNames {
		if n == name && Kind(k) != KindNone {
			return Kind(k), true
		}
	}
	return KindNone, false
}

// Op is what a Call did to its resource.
type Op uint8

// The operations of a Call.
const (
	OpNone  Op = iota // undefined call type; sp-rtrace has one (CALL type 0)
	OpAlloc           // ID was allocated with Size
	OpFree            // ID was freed
	OpMove            // OldID was freed and ID allocated with Size in one call (realloc); both may be equal
)

var opNames = [...]string{"none", "alloc", "free", "move"}

// String returns the operation's name in lower case, as the jsonl format spells it.
func (o Op) String() string {
	if int(o) < len(opNames) {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// ParseOp returns the operation with the given name.
func ParseOp(name string) (Op, bool) {
	for o, n := range opNames {
		if n == name {
			return Op(o), true
		}
	}
	return OpNone, false
}

// StackEnd is where a stack stops, and so how far to trust it.
type StackEnd uint8

// How a stack ended.
const (
	StackAbsent    StackEnd = iota // no stack was asked for or stored; Frames is empty
	StackUnknown                   // frames from a format that does not record how they end
	StackComplete                  // the outermost frame of the thread was reached
	StackTruncated                 // cut at the depth limit; more frames exist
	StackFailed                    // unwinding failed: see Stack.Reason
)

var stackEndNames = [...]string{"absent", "unknown", "complete", "truncated", "failed"}

// String returns the end's name in lower case, as the jsonl format spells it.
func (e StackEnd) String() string {
	if int(e) < len(stackEndNames) {
		return stackEndNames[e]
	}
	return fmt.Sprintf("stackend(%d)", uint8(e))
}

// ParseStackEnd returns the stack end with the given name.
func ParseStackEnd(name string) (StackEnd, bool) {
	for e, n := range stackEndNames {
		if n == name {
			return StackEnd(e), true
		}
	}
	return StackAbsent, false
}
