package swapevents

import (
	"maps"

	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
	calls "rtrace-bpf/tracer/functions"
)

// Function makes a message of an event of a function. It implements
// functions.Options.Record.
func (t *Translator) Function(e *calls.Event, r *trace.Record) bool {
	where := swap.Where{PID: uint32(r.PID), TID: uint32(r.TID), CPU: uint32(r.CPU - 1)}
	var message swap.Message
	switch e.Kind {
	case calls.Entered:
		t.nameFunction(e)
		t.values, t.args = e.Arguments(t.values[:0]), t.args[:0]
		for _, a := range t.values {
			t.args = append(t.args, swap.Item(a))
		}
		message = &swap.Function{Call: swap.Call{Where: where, PC: e.PC, Caller: callerOf(e), Args: t.args}}
	case calls.Left:
		message = &swap.Function{Call: swap.Call{Where: where, PC: e.PC, Caller: callerOf(e), Ended: true, Result: swap.Item(e.Result())}}
	case calls.Looked:
		message = &swap.Variable{ID: e.Value.ID, Data: e.Data()}
	default:
		return false
	}
	t.data = swap.Place(r, message, t.data)
	return true
}

func callerOf(e *calls.Event) uint64 {
	if e.Caller == 0 {
		return swap.UnknownCaller
	}
	return e.Caller
}

// nameFunction notes the name of a function.
func (t *Translator) nameFunction(e *calls.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.functionNames[e.PC]; ok {
		return
	}
	if t.functionNames == nil {
		t.functionNames = map[uint64]string{}
	}
	name := e.Function.Symbol
	if name == "" {
		name = e.Function.String()
	}
	t.functionNames[e.PC] = name
}

// Functions returns the names of the functions that were called, by the pc in their
// messages. The caller owns the map.
func (t *Translator) Functions() map[uint64]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.functionNames)
}
