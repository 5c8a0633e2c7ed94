package nettrace

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// threads holds the threads to which version 6 refers by index.
type threads struct {
	data  []byte // rows that are not in a block yet
	index map[thread]uint64
	last  thread // the thread that was asked for last, and its index
	at    uint64
}

// thread is a thread of the system, with 0 for what is unknown.
type thread struct{ pid, tid int32 }

// The capturing thread of version 6 stands for the tracer.
const captureIndex = 1

// capture returns the number of the thread that has written the events. It is the same
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

// thread returns the number of a thread in the header of an event.
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
