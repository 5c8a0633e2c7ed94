package naming

import (
	"sync"

	"rtrace-bpf/encoder/nettrace"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// Functions names the functions of a trace in nettrace for its other readers, as long as
// there is time and room for them.
type Functions struct {
	*resolve.Resolver
	// Hurry is closed when names are not to be waited for.
	Hurry <-chan struct{}

	room int // bytes that names may take; negative for any number
}

var _ nettrace.Symbols = (*Functions)(nil)

// nameCost is about how many bytes a name takes in a trace in addition to its text.
const nameCost = 40

// NewFunctions returns the functions of a process with this root. Their names take at most
// room bytes; a negative number is no limit.
func NewFunctions(root *Root, room int, hurry <-chan struct{}) *Functions {
	return &Functions{Resolver: root.withoutLines(), Hurry: hurry, room: room}
}

// Function implements nettrace.Symbols.
func (f *Functions) Function(pid int32, addr uint64) string {
	select {
	case <-f.Hurry:
		return ""
	default:
	}
	if f.room == 0 {
		return ""
	}
	name := f.Resolver.Function(pid, addr)
	if f.room > 0 && name != "" {
		f.room = max(f.room-nameCost-len(name), 0)
	}
	return name
}

// Closing is a writer that is closed while it holds Turn. An encoder that names functions
// at the end reads the symbols of all files, which takes time and memory.
type Closing struct {
	trace.Writer
	Turn sync.Locker
}

// Close implements trace.Writer.
func (c *Closing) Close() error {
	c.Turn.Lock()
	defer c.Turn.Unlock()
	return c.Writer.Close()
}
