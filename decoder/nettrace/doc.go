// Package nettrace reads the streams of .NET's EventPipe: version 4, also with the
// metadata of version 5, and version 6, from files, pipes and sockets.
// docs/formats/nettrace.md describes the format.
//
// [Scanner] returns the events of a stream in the order of their times, [Reader]
// returns records.
package nettrace

import (
	"bytes"
	"fmt"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// Limits of what is held in memory. Real streams stay far below them: the runtime
// forgets its stacks every few seconds, and marks a sorted event ten times a second.
const (
	maxPending  = 64 << 20  // bytes of blocks whose events wait for older ones
	maxQueue    = 1 << 18   // events that wait for older ones
	maxStacks   = 256 << 20 // bytes of stacks between two sequence points
	maxMetadata = 1 << 20   // kinds of events
	maxMetaSize = 128 << 20 // bytes of descriptions of events
	maxThreads  = 1 << 20
	maxLabels   = 1 << 20  // lists of labels between two sequence points
	maxLabelled = 64 << 20 // bytes of those
	maxDepth    = 32       // of types within types
)

// Options are the options for reading. The zero value reads as much as possible.
type Options struct {
	// Strict makes an error of what is otherwise skipped and counted: objects and
	// blocks of unknown kinds, events without a description, references to missing
	// stacks, payloads that do not match their description, and bytes after the end.
	Strict bool
	// FirstResource is the number of the first resource, for records that become part
	// of a trace with resources of its own; then all are named after their sources. 0
	// is for a separate trace, whose first resource is 1 and named "memory".
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

// Match reports whether head begins a stream of this format or of its predecessor,
// version 3, which NewReader rejects by name.
func Match(head []byte) bool {
	return bytes.HasPrefix(head, []byte(wire.Magic)) || bytes.HasPrefix(head, []byte(magicV3))
}

// magicV3 begins a stream of version 3: the length of the serializer's name, and the
// name.
const magicV3 = "\x14\x00\x00\x00" + wire.Serializer
