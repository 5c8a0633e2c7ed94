package nettrace

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// threads are the threads that version 6 refers to by their index.
type threads struct {
	data  []byte // rows that are not in a block yet
	index map[thread]uint64
	last  thread // that was asked for, and its index
	at    uint64
}

// thread is a thread of the system, with zeros for what is unknown.
type thread struct{ pid, tid int32 }

// The capturing thread of version 6 stands for the tracer.
const captureIndex = 1

// capture returns what events say of the thread that has written them. It is one
// for all, so that readers keep their order.
func (e *Writer) capture() uint64 {
	if e.opts.Version == V4 {
		return uint64(uint32(e.pid))
	}
	return captureIndex
}

// start makes the capturing thread known.
func (t *threads) start() {
	t.index = make(map[thread]uint64)
	t.data = appendSized(t.data, appendUTF8([]byte{captureIndex, wire.ThreadName}, wire.ProviderOwn))
}

// thread returns how the head of an event names a thread.
func (e *Writer) thread(pid, tid int32) uint64 {
	if e.opts.Version == V4 {
		return uint64(uint32(tid))
	}
	t := &e.threads
	key := thread{pid, tid}
	if key == t.last && t.at != 0 {
		return t.at
	}
	at, ok := t.index[key]
	if !ok {
		at = captureIndex + 1 + uint64(len(t.index))
		t.index[key] = at
		b := binary.AppendUvarint(nil, at)
		b = binary.AppendUvarint(append(b, wire.ThreadProcess), uint64(uint32(pid)))
		b = binary.AppendUvarint(append(b, wire.ThreadID), uint64(uint32(tid)))
		t.data = appendSized(t.data, b)
	}
	t.last, t.at = key, at
	return at
}
