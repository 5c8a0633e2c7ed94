// Package nettrace reads the streams that .NET's EventPipe writes: of version 4,
// also with the metadata of version 5, and of version 6, from files, pipes and
// sockets. docs/formats/nettrace.md describes the format.
//
// [Scanner] delivers the events of a stream in the order of their time, [Reader]
// records.
package nettrace

import (
	"bytes"
	"fmt"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// Limits of what is held in memory. Real streams stay far below: the runtime
// forgets its stacks every few seconds, and marks a sorted event ten times a
// second.
const (
	maxPending  = 64 << 20  // bytes of blocks whose events wait for older ones
	maxQueue    = 1 << 18   // events that wait for older ones
	maxStacks   = 256 << 20 // bytes of stacks between two sequence points
	maxMetadata = 1 << 20   // kinds of events
	maxMetaSize = 128 << 20 // bytes of what describes them
	maxThreads  = 1 << 20
	maxLabels   = 1 << 20  // lists of labels between two sequence points
	maxLabelled = 64 << 20 // bytes of them
	maxDepth    = 32       // of types within types
)

// Options says how to read. The zero value reads as much as possible.
type Options struct {
	// Strict makes an error of what is skipped and counted otherwise: objects
	// and blocks of unknown kinds, events without a description, references to
	// stacks that are not there, payloads that do not fit their description, and
	// bytes behind the end.
	Strict bool
	// FirstResource is the number of the first resource, for records that go into a
	// trace which has resources of its own; all are named by their sources then. 0
	// is for a trace of its own, whose first resource is 1 and named "memory".
	FirstResource uint32
}

func syntaxError(offset int64, err error) error {
	return &trace.SyntaxError{Format: wire.Format, Offset: offset, Err: err}
}

func malformed(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, trace.ErrMalformed)...)
}

func tooMuch(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, trace.ErrLimit)...)
}

// Match reports whether a stream begins as one of this format does, or as one of
// its predecessor, version 3, which NewReader refuses by name.
func Match(head []byte) bool {
	return bytes.HasPrefix(head, []byte(wire.Magic)) || bytes.HasPrefix(head, []byte(magicV3))
}

// magicV3 begins a stream of version 3: the length of the serializer's name.
const magicV3 = "\x14\x00\x00\x00" + wire.Serializer
