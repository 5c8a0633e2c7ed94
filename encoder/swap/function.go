package swap

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/swap"
)

// UnknownCaller stands for an unknown caller.
const UnknownCaller = wire.UnknownCaller

// Call is the start or end of a call, as functions and system calls have it.
type Call struct {
	Where
	PC     uint64 // of the function's first instruction, in the process or in the kernel
	Caller uint64
	Args   []Item // at the start
	Ended  bool
	Result Item // at the end
}

// appendCall appends the fields after the thread, or in a system call after its class.
func (c *Call) appendCall(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, c.PC)
	b = binary.LittleEndian.AppendUint64(b, c.Caller)
	b = binary.LittleEndian.AppendUint32(b, c.CPU)
	if c.Ended {
		return c.Result.appendTo(b)
	}
	return appendItems(b, c.Args)
}

// Function is a call of a function.
type Function struct{ Call }

func (m *Function) messageID() uint32 {
	if m.Ended {
		return wire.FunctionExit
	}
	return wire.FunctionEntry
}

func (m *Function) appendTo(b []byte) []byte { return m.appendCall(m.appendThread(b)) }

// Syscall is a system call. Its result is always an item of letter x.
type Syscall struct {
	Call
	Class uint32 // probe type: the bit of its class
}

func (m *Syscall) messageID() uint32 {
	if m.Ended {
		return wire.SyscallExit
	}
	return wire.SyscallEntry
}

func (m *Syscall) appendTo(b []byte) []byte {
	return m.appendCall(binary.LittleEndian.AppendUint32(m.appendThread(b), m.Class))
}

// Variable is a value that was read within a function. The message has no field for the
// place and the thread.
type Variable struct {
	ID   uint32
	Data []byte // empty if it could not be read
}

func (m *Variable) messageID() uint32 { return wire.FBI }

func (m *Variable) appendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, m.ID)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(m.Data)))
	return append(b, m.Data...)
}
