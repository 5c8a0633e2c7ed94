package main

import (
	"errors"
	"fmt"
	"maps"

	"github.com/spf13/pflag"

	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
	calls "rtrace-bpf/tracer/functions"
)

// functionsConfig is which functions SWAP tells of, and which values in them.
type functionsConfig struct {
	functions []string
	values    []string
}

func (n *functionsConfig) declare(f *pflag.FlagSet) {
	f.StringArrayVar(&n.functions, "function", nil, "in swap, tell the calls of the function `LIB:SYM(ARGS)RET`, as libc.so.6:open(sd)d; may be repeated. LIB is the path or name of a mapped file, or empty for the program; SYM a symbol, a C++ name as in the source, or +0xADDRESS. "+
		"ARGS has a letter for each argument: b bool, c char, d int, x long, p pointer, s text; in 32-bit programs f float and w double, too. RET is one more of b c d x p s for the result, v for none, n for one that is not told, or missing: then ends are not told")
	f.StringArrayVar(&n.values, "fbi", nil, "in swap, tell a value whenever a thread comes to an instruction, with `LIB:SYM+0xOFFSET@ID=VALUE/BYTES`, as :work+0x1c@7=[rdi+8]/4; may be repeated. ID is the number of the variable in messages, VALUE a register as rdi, or what is in memory, as [rdi+8] or [[rsp-0x10]+4]; 512 bytes at most")
}

// options returns what is recorded.
func (n *functionsConfig) options(c *config) (o calls.Options, err error) {
	for _, text := range n.functions {
		f, err := calls.ParseFunction(text)
		if err != nil {
			return o, fmt.Errorf("--function %w", err)
		}
		o.Functions = append(o.Functions, f)
	}
	for _, text := range n.values {
		v, err := calls.ParseValue(text)
		if err != nil {
			return o, fmt.Errorf("--fbi %w", err)
		}
		o.Values = append(o.Values, v)
	}
	if o.Any() && (c.format != "swap" || c.dotnet.on) {
		return o, errors.New("--function and --fbi go with --format swap, and not with --dotnet")
	}
	return o, nil
}

// called implements calls.Options.Record.
func (m *messages) called(e *calls.Event, r *trace.Record) bool {
	where := swap.Where{PID: uint32(r.PID), TID: uint32(r.TID), CPU: uint32(r.CPU - 1)}
	var message swap.Message
	switch e.Kind {
	case calls.Entered:
		m.nameFunction(e)
		m.values, m.args = e.Arguments(m.values[:0]), m.args[:0]
		for _, a := range m.values {
			m.args = append(m.args, swap.Item(a))
		}
		message = &swap.Function{Call: swap.Call{Where: where, PC: e.PC, Caller: callerOf(e), Args: m.args}}
	case calls.Left:
		message = &swap.Function{Call: swap.Call{Where: where, PC: e.PC, Caller: callerOf(e), Ended: true, Result: swap.Item(e.Result())}}
	case calls.Looked:
		message = &swap.Variable{ID: e.Value.ID, Data: e.Data()}
	default:
		return false
	}
	m.data = swap.Place(r, message, m.data)
	return true
}

func callerOf(e *calls.Event) uint64 {
	if e.Caller == 0 {
		return swap.UnknownCaller
	}
	return e.Caller
}

// nameFunction notes the name of a function.
func (m *messages) nameFunction(e *calls.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.functionNames[e.PC]; ok {
		return
	}
	if m.functionNames == nil {
		m.functionNames = map[uint64]string{}
	}
	name := e.Function.Symbol
	if name == "" {
		name = e.Function.String()
	}
	m.functionNames[e.PC] = name
}

// functions returns the names of the named functions that were called, by what their
// messages have as pc. The caller owns the map.
func (m *messages) functions() map[uint64]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.functionNames)
}
