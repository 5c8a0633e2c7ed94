package swapevents

import (
	"maps"
	"sync"

	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/activity"
	calls "rtrace-bpf/tracer/functions"
)

// Translator makes messages of SWAP of what a process does. It is for one tracer.
type Translator struct {
	data []byte
	list []activity.Argument
	args []swap.Item
	// paths of files that are used, by their numbers.
	paths map[uint64]string

	values []calls.Argument

	mu            sync.Mutex        // of names: the trace may end while Activity runs
	names         map[uint64]string // of system calls, by their pc
	functionNames map[uint64]string // of functions that the user names, likewise
}

// Syscalls returns the names of the system calls so far, by the pc in their messages. The
// caller owns the map.
func (t *Translator) Syscalls() map[uint64]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.names)
}

// name notes the name of a system call.
func (t *Translator) name(c *activity.Call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.names[c.Address]; ok {
		return
	}
	if t.names == nil {
		t.names = map[uint64]string{}
	}
	t.names[c.Address] = c.Name
}

// maxPaths is how many paths are kept at most.
const maxPaths = 1 << 16

// path returns the path of a file that is used, "N/A" if it is not known: if there are too
// many of them, or the record with the path was lost.
func (t *Translator) path(a *activity.Access) string {
	if a.Path == "" {
		if known := t.paths[a.File]; known != "" {
			return known
		}
		return "N/A"
	}
	if t.paths == nil || len(t.paths) >= maxPaths {
		t.paths = map[uint64]string{}
	}
	t.paths[a.File] = a.Path
	return a.Path
}

// Activity makes a message of an event. It implements activity.Options.Record.
func (t *Translator) Activity(e *activity.Event, r *trace.Record) bool {
	message := t.message(e, swap.Where{PID: uint32(r.PID), TID: uint32(r.TID), CPU: uint32(r.CPU - 1)})
	if message == nil {
		return false
	}
	if e.Kind == activity.Use || e.Kind == activity.Done {
		r.PID = int32(e.User)
	}
	t.data = swap.Place(r, message, t.data)
	return true
}

func (t *Translator) message(e *activity.Event, where swap.Where) swap.Message {
	switch e.Kind {
	case activity.Sample:
		return &swap.Sample{Where: where, PC: e.PC}
	case activity.Off, activity.On:
		return &swap.Switch{Where: where, Runs: e.Kind == activity.On, PC: e.PC}
	case activity.Begin:
		t.name(e.Call)
		t.list, t.args = e.Arguments(t.list[:0]), t.args[:0]
		for _, a := range t.list {
			t.args = append(t.args, swap.Item(a))
		}
		return &swap.Syscall{Class: uint32(e.Call.Class), Call: swap.Call{Where: where, PC: e.Call.Address, Caller: e.PC, Args: t.args}}
	case activity.End:
		t.name(e.Call)
		result := swap.Item{Letter: 'x', Number: uint64(e.Result)}
		return &swap.Syscall{Class: uint32(e.Call.Class), Call: swap.Call{Where: where, PC: e.Call.Address, Caller: e.PC, Ended: true, Result: result}}
	case activity.Use:
		f := e.Access
		return &swap.FileUse{
			PID: e.User, TID: e.TID, FD: f.FD, Event: uint32(f.Event), Path: t.path(f),
			Opened: f.Opened, Lock: swap.Lock(f.Lock),
		}
	case activity.Done:
		return &swap.FileUse{PID: e.User, TID: e.TID, Ended: true, Result: e.Result}
	}
	return nil
}
