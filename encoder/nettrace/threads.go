package nettrace

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// threads numbers the threads of events. Version 6 refers to threads by index.
type threads struct {
	indexed bool   // version 6
	capture uint64 // the thread that has written the events; it is the same for all, so that readers keep their order
	data    []byte // rows that are not in a block yet
	index   map[thread]uint64
	last    thread // the thread that was asked for last, and its index
	at      uint64
}

// thread is a thread of the system, with 0 for what is unknown.
type thread struct{ pid, tid int32 }

// The capturing thread of version 6 stands for the tracer.
const captureIndex = 1

// start begins a stream of a process.
func (t *threads) start(version int, pid int32) {
	if version == V4 {
		t.capture = uint64(uint32(pid))
		return
	}
	t.indexed, t.capture = true, captureIndex
	t.index = make(map[thread]uint64)
	t.data = appendSized(t.data, appendUTF8([]byte{captureIndex, wire.ThreadName}, wire.ProviderOwn))
}

// number returns the number of a thread in the header of an event.
func (t *threads) number(pid, tid int32) uint64 {
	if !t.indexed {
		return uint64(uint32(tid))
	}
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
