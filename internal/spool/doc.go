// Package spool stores the records of a trace in a temporary file until they
// are read back, once and in order. It is for output formats that are too slow
// to write while the program is traced.
//
// A [File] is a trace.Writer; [File.Reader] reads what was written. All fields
// of all kinds of records are preserved. The file has no name, so it vanishes
// with the process, however that ends. The part that has been read is released
// to the file system if that supports it.
//
// The layout is private to one process and one version:
//
//	file   = { length uint32 LE, that many bytes of whole records }
//	record = 0, length, one line of JSON (package jsonrecord)
//	       | callBit|flags, the call's fields
//
// Numbers are varints, most of them differences from the previous call. A text
// or stack is written out at its first use and referred to by number
// afterwards; see type table for how many are remembered.
package spool

// The first byte of a call: its operation, and flags for fields that most calls
// lack.
const (
	opMask   = 3
	hasRare  = 1 << 2 // a mask of rare fields follows, see below
	hasTID   = 1 << 3 // another thread than the last call's
	hasCPU   = 1 << 4 // another processor than the last call's
	hasSize  = 1 << 5
	hasOld   = 1 << 6 // OldID or EntryTime
	callBit  = 1 << 7
	tagOther = 0
)

// The mask of rare fields, in their order.
const (
	rareOp      = 1 << iota // an operation that does not fit into opMask
	rareSeq                 // not the number after the last call's
	rarePID                 // differs from the last call's, like the next two
	rareContext             //
	rareResource
	rareIndex
	rareCaller
	rareThread
	rareArgs
	rareEnd // the first unused bit
)

// blockBytes is the size from which a block is written to the file.
const blockBytes = 64 << 10

// zigzag maps small numbers of either sign to small numbers.
func zigzag(v uint64) uint64 { return v<<1 ^ uint64(int64(v)>>63) }

func unzigzag(v uint64) uint64 { return v>>1 ^ -(v & 1) }
