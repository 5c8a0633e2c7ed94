package modules

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/functions"
)

// Act is an allocation or a free of a resource by a call.
type Act struct {
	Op       trace.Op // OpAlloc or OpFree
	Function string
	Resource uint32
	ID, Size uint64
	Args     []trace.Arg
}

// call is a call of a row's function.
type call struct {
	*Recorder
	row      *row
	function string // its canonical name
	module   *Module
	entry    *functions.Event
	exit     *functions.Event // nil at the entry
	ends     []*end           // what the call ends
	acts     []Act
}

// word returns an argument, from 0.
func (c *call) word(n int) uint64 { return c.entry.Words()[n] }

// text returns an argument that is a text.
func (c *call) text(n int) (string, bool) {
	number := 0
	for i := range n {
		if letter := c.row.args[i]; letter == 's' || letter == 'B' {
			number++
		}
	}
	return c.entry.Text(number)
}

func (c *call) result() uint64 { return c.exit.Words()[0] }

// written returns the n-th 32-bit number that the call has written.
func (c *call) written(n int) (uint64, bool) {
	data := c.exit.Data()
	if len(data) < 4*n+4 {
		return 0, false
	}
	return uint64(binary.NativeEndian.Uint32(data[4*n:])), true
}

// pointer returns the pointer that the call has written.
func (c *call) pointer() (uint64, bool) {
	data := c.exit.Data()
	switch {
	case c.narrow && len(data) >= 4:
		return uint64(binary.NativeEndian.Uint32(data)), true
	case !c.narrow && len(data) >= 8:
		return binary.NativeEndian.Uint64(data), true
	}
	return 0, false
}

// alloc records an allocation.
func (c *call) alloc(resource string, id, size uint64, args ...argument) {
	c.allocAs(c.number(c.module, resource), id, size, args...)
}

// allocAs is alloc with the number of the resource.
func (c *call) allocAs(resource uint32, id, size uint64, args ...argument) {
	a := Act{Op: trace.OpAlloc, Function: c.function, Resource: resource, ID: id, Size: size, Args: c.describe(args)}
	c.overtake(key{a.Resource, id}, c)
	c.acts = append(c.acts, a)
}

func (c *call) describe(args []argument) (all []trace.Arg) {
	for _, x := range args {
		if text, ok := x.value(c); ok {
			all = append(all, trace.Arg{Name: x.name, Value: text})
		}
	}
	return all
}

// free records a free.
func (c *call) free(resource string, id uint64) {
	c.acts = append(c.acts, Act{Op: trace.OpFree, Function: c.function, Resource: c.number(c.module, resource), ID: id})
}

// stateOf returns what the call's module remembers, which begin makes at first.
func stateOf[T any](c *call, begin func() T) T {
	if c.state[c.module] == nil {
		c.state[c.module] = begin()
	}
	return c.state[c.module].(T)
}

// The numbers in rows.

func result(c *call) uint64 { return c.result() }

func fdResult(c *call) uint64 { return uint64(uint32(c.result())) }

func arg(n int) num { return func(c *call) uint64 { return c.word(n) } }

func fdArg(n int) num { return func(c *call) uint64 { return uint64(uint32(c.word(n))) } }

// The conditions for success in rows.

func notMinusOne(c *call) bool { return int32(c.result()) != -1 }

func notNull(c *call) bool { return c.result() != 0 }

func zero(c *call) bool { return int32(c.result()) == 0 }

// The arguments in rows.

func text(name string, n int) argument {
	return argument{name, func(c *call) (string, bool) { return c.text(n) }}
}

// hex is a number of 32 bits; long is a number of a word.
func hex(name string, n int) argument {
	return argument{name, func(c *call) (string, bool) { return fmt.Sprintf("0x%x", uint32(c.word(n))), true }}
}

func long(name string, n int) argument {
	return argument{name, func(c *call) (string, bool) { return fmt.Sprintf("0x%x", c.word(n)), true }}
}

func decimal(name string, n int) argument {
	return argument{name, func(c *call) (string, bool) { return strconv.Itoa(int(int32(c.word(n)))), true }}
}
