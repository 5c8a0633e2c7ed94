// Package spool keeps the records of a trace in a temporary file until they
// are read back, once and in their order: for formats whose records cost more
// than can be spent while a program is traced.
//
// A [File] is a trace.Writer; [File.Reader] reads what was written. Every field
// of every kind comes back as it was. The file has no name, so it is gone with
// the process, however that ends, and what has been read is given back to the
// file system, where that can be.
//
// The layout is private to one process and one version:
//
//	file   = { length uint32 LE, that many bytes of whole records }
//	record = 0, length, one line of JSON (package encoder/jsonl)
//	       | callBit|flags, the call's fields
//
// Numbers are varints, most of them differences from the call before. A text
// or stack is written out at its first use and has a number from then on; see
// type table for how much of that is remembered.
package spool

// The first byte of a call: its operation, and which fields follow that most
// calls do not have.
const (
	opMask   = 3
	hasRare  = 1 << 2 // a mask of the rare ones, see below
	hasTID   = 1 << 3 // another thread than the last call's
	hasCPU   = 1 << 4 // another processor than the last call's
	hasSize  = 1 << 5
	hasOld   = 1 << 6 // OldID or EntryTime
	callBit  = 1 << 7
	tagOther = 0
)

// The mask of rare fields, in their order.
const (
	rareOp      = 1 << iota // an operation that opMask has no room for
	rareSeq                 // not the number behind the last call's
	rarePID                 // not the last call's; the next two as well
	rareContext             //
	rareResource
	rareIndex
	rareCaller
	rareThread
	rareArgs
	rareEnd // the first bit without a meaning
)

// blockBytes is how much is gathered before it goes to the file.
const blockBytes = 64 << 10

// zigzag maps small numbers of either sign to small numbers.
func zigzag(v uint64) uint64 { return v<<1 ^ uint64(int64(v)>>63) }

func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }
