package swap

import (
	"strconv"
	"strings"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// Phase is the part of a call that a message is about.
type Phase uint8

// The phases.
const (
	Whole Phase = iota // the whole call
	Begin              // its start; another message follows at its end
	End                // its end
)

// Event is a call of a function, or its start or end, as a message describes it.
type Event struct {
	Phase    Phase
	Kind     string // "function", "system call", "file" or the name of the probe: "memory"
	Function string // name, or else address or number
	PC       uint64 // of the function; 0 if unknown
	Args     string // as in a dump, without brackets
	Result   string // empty for none
	Errno    int64
	Caller   uint64 // address; 0 if unknown
	// Key is equal in the messages of one call, among the open calls of its thread.
	Key string
}

// maxErrno is the largest error number that the kernel returns, negated, in place of a
// result (MAX_ERRNO in include/linux/err.h).
const maxErrno = 4095

// Event returns the call that a message is about. It returns false for messages about
// other objects and those that do not parse. names, if not nil, names functions by their
// numbers.
func (t *Parser) Event(m *Message, f *Fields, names map[uint32]string) (e Event, ok bool) {
	if t.Parse(m, f) != nil || f.Layout == nil {
		return Event{}, false
	}
	switch m.ID {
	case wire.FunctionEntry, wire.FunctionExit:
		e.Kind = "function"
	case wire.SyscallEntry, wire.SyscallExit:
		e.Kind = "system call"
	case wire.FileFunctionEntry, wire.FileFunctionExit:
		e.Kind = "file"
		e.Function = "file"
		if v := f.field("event_type"); v != nil {
			e.Function = "file " + nameOf(v)
			e.Args = strconv.Quote(string(f.field("real_path").Text))
		}
	default:
		if m.ID>>8 != wire.ProbeMemory>>8 {
			return Event{}, false
		}
		e.Kind = f.Message.Tail
		if e.Kind == "" {
			e.Kind = "lifecycle"
		}
		f.probe(&e, names)
		f.common(&e)
		return e, true
	}
	f.common(&e)
	if e.PC = f.number("pc"); e.Function == "" {
		e.Function = "0x" + strconv.FormatUint(e.PC, 16)
	}
	e.Caller = f.number("caller_pc")
	e.Key = e.Kind + strconv.FormatUint(e.PC, 16)
	e.Phase = Begin
	if m.ID == wire.FunctionExit || m.ID == wire.SyscallExit || m.ID == wire.FileFunctionExit {
		e.Phase = End
	}
	if m.ID == wire.SyscallExit {
		if v := f.field("return"); v != nil && int64(v.Num) < 0 && int64(v.Num) >= -maxErrno {
			e.Errno = -int64(v.Num)
		}
	}
	return e, true
}

// CallEvent returns a call that allocated or freed something other than memory as an
// Event. waits reports whether the size of the call is how long it waited, in ns.
func CallEvent(resource string, c *trace.Call) (e Event, waits bool) {
	e = Event{Kind: resource, Function: c.Function, Args: ArgumentText(c.Args)}
	ends := c.Op == trace.OpFree
	id := "0x" + strconv.FormatUint(c.ID, 16)
	if resource == wire.Descriptor {
		id = strconv.FormatUint(c.ID, 10)
	}
	locks := false
	if t := wire.LookupObject(resource); t != nil {
		way := t.Way(c.Function, ends)
		e.Kind = wire.Lookup(way.Message).Tail
		locks = t.Message == wire.ProbeSync
		waits = way.Waits && locks
	}
	switch {
	case (ends || locks) && e.Args != "":
		e.Args = id + " " + e.Args
	case ends || locks:
		e.Args = id
	default:
		e.Result = id
	}
	if len(c.Stack.Frames) > 0 {
		e.Caller = c.Stack.Frames[0]
	}
	return e, waits
}

// ArgumentText returns arguments of a Call as text.
func ArgumentText(args []trace.Arg) string {
	texts := make([]string, len(args))
	for i, a := range args {
		texts[i] = a.Name + "=" + a.Value
	}
	return strings.Join(texts, " ")
}

// field returns the value of the field with the given name, or nil.
func (f *Fields) field(name string) *Value {
	for i := range f.Values {
		if v := &f.Values[i]; v.Field != nil && v.Field.Name == name {
			return v
		}
	}
	return nil
}

// common sets the arguments and the result.
func (f *Fields) common(e *Event) {
	for i := range f.Values {
		v := &f.Values[i]
		if v.Field == nil {
			continue
		}
		switch v.Field.Type {
		case wire.Items:
			text, _ := appendValueText(nil, f.Values[i:])
			e.Args = string(text[1 : len(text)-1])
		case wire.Item:
			if v.Letter != 'v' && v.Letter != 'n' {
				e.Result = string(appendItemText(nil, v))
			}
		}
	}
}

// probe sets what probe messages have.
func (f *Fields) probe(e *Event, names map[uint32]string) {
	api := uint32(f.number("api_id"))
	e.Function = "function " + strconv.FormatUint(uint64(api), 10)
	if known := wire.LookupAPI(f.Message.ID, api); known != nil {
		e.Function = known.Name
	}
	if name := names[api]; name != "" {
		e.Function = name
	}
	e.Errno = int64(f.number("errno"))
	if e.Caller = f.number("caller"); e.Caller == wire.UnknownCaller {
		e.Caller = 0
	}
	e.Key = e.Kind + strconv.FormatUint(uint64(api), 10)
	if v := f.field("api_type"); v != nil {
		switch name := nameOf(v); {
		case ends(name, " start"):
			e.Phase = Begin
		case ends(name, " end"):
			e.Phase = End
		}
	}
	if v := f.field("pthread_id"); v != nil && f.number("api_type") < 4 {
		e.Phase = Whole // starting and stopping a thread are no phases
	}
}

func ends(s, with string) bool { return len(s) > len(with) && s[len(s)-len(with):] == with }

// nameOf returns the meaning of the number in a field.
func nameOf(v *Value) string {
	for _, known := range v.Field.Values {
		if known.Number == int64(v.Num) {
			return known.Name
		}
	}
	return strconv.FormatUint(v.Num, 10)
}
