package mptrace

import (
	"strconv"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// HATF writes the Heap Allocation Trace Format 1.0: a text with one record a
// line. Numbers at the end of a record that are 0 are omitted.
type HATF struct {
	// Full adds the parts of the format that the original tool does not write:
	// the thread of each event, its time if there is a clock, records of
	// threads, and the tag for blocks that realloc did not move.
	Full bool

	threads map[uint64]struct{} // with a creation record
}

// Tags of records. Of the two for realloc, the original tool writes only the
// second.
const (
	hatfAlloc         = '1' // size address time thread heap attributes
	hatfFree          = '2' // address time thread heap attributes
	hatfReallocInside = '3' // size address address time thread heap attributes
	hatfRealloc       = '4'
	hatfThread        = '9' // thread attributes
	hatfThreadEnd     = "10"
)

// AppendHeader appends the text before the records. name is the trace's name;
// the original tool uses the name of the output file.
func (h *HATF) AppendHeader(dst []byte, name string) []byte {
	dst = append(dst, "## Tracename: "...)
	dst = append(dst, name...)
	return append(dst, "\n## Author: Unknown\n## Date: Unknown\n## DTDURL: hatf.dtd\n"+
		"## Description: Converted to HATF by mptrace 1.4.\n\n"...)
}

// AppendEvent appends the records of an event that counts; H and I have none.
// time is in nanoseconds since the start of the trace, 0 without a clock.
func (h *HATF) AppendEvent(dst []byte, n *Entry, thread uint64, time int64) []byte {
	if n.Kind == wire.Heap || n.Kind == wire.Internal {
		return dst
	}
	if h.Full && thread != 0 {
		dst = h.appendThread(dst, thread)
	}
	if n.Problem == Twice {
		dst = appendHATFAddress(append(dst, hatfFree), n.OldAddress)
		dst = h.appendRest(dst, thread, time)
	}
	switch n.Kind {
	case wire.Alloc:
		dst = strconv.AppendUint(append(dst, hatfAlloc, ' '), n.Size, 10)
		dst = appendHATFAddress(dst, n.Address)
	case wire.Free:
		dst = appendHATFAddress(append(dst, hatfFree), n.Address)
	case wire.Realloc:
		tag := byte(hatfRealloc)
		if h.Full && n.Address == n.OldAddress {
			tag = hatfReallocInside
		}
		dst = strconv.AppendUint(append(dst, tag, ' '), n.Size, 10)
		dst = appendHATFAddress(appendHATFAddress(dst, n.OldAddress), n.Address)
	}
	return h.appendRest(dst, thread, time)
}

// appendRest appends the time and thread of a full record, and ends the line.
func (h *HATF) appendRest(dst []byte, thread uint64, time int64) []byte {
	if h.Full && (time > 0 || thread != 0) {
		dst = strconv.AppendUint(append(dst, ' '), uint64(max(time, 0)), 10)
	}
	if h.Full && thread != 0 {
		dst = strconv.AppendUint(append(dst, ' '), thread, 10)
	}
	return append(dst, '\n')
}

// appendThread appends the creation of a thread, unless it was appended before.
func (h *HATF) appendThread(dst []byte, thread uint64) []byte {
	if _, ok := h.threads[thread]; ok {
		return dst
	}
	if h.threads == nil {
		h.threads = make(map[uint64]struct{})
	}
	h.threads[thread] = struct{}{}
	dst = strconv.AppendUint(append(dst, hatfThread, ' '), thread, 10)
	return append(dst, '\n')
}

// AppendThreadEnd appends the end of a thread if its creation was appended.
func (h *HATF) AppendThreadEnd(dst []byte, thread uint64) []byte {
	if _, ok := h.threads[thread]; !ok {
		return dst
	}
	delete(h.threads, thread)
	dst = strconv.AppendUint(append(dst, hatfThreadEnd+" "...), thread, 10)
	return append(dst, '\n')
}

func appendHATFAddress(dst []byte, v uint64) []byte {
	return strconv.AppendUint(append(dst, " 0x"...), v, 16)
}
