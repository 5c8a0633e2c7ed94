// Package mtrc reads the tracing files of mpatrol: of 32 and 64 bit, in either
// byte order, of all versions up to 1.5.99, whole or cut, one stream or several
// in a row. docs/formats/mtrc.md describes the format.
//
// [Scanner] delivers the events as they lie in the file, [Reader] records.
package mtrc

import (
	"errors"
	"fmt"

	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// DefaultMaxName is the limit of a name in bytes unless Options sets another.
// Real writers keep names within wire.MaxName bytes.
const DefaultMaxName = 1 << 20

// Options says how to read. The zero value reads as much as possible.
type Options struct {
	// Strict makes everything that no writer sends an error: ids of names
	// that are not defined or 0 with a name, bytes behind the trailer, a
	// stream without a trailer in front of another, and of a Reader events
	// that contradict the ones before.
	Strict bool
	// MaxName limits a name in bytes; 0 means DefaultMaxName.
	MaxName int
}

func (o *Options) check() error {
	if o.MaxName < 0 || o.MaxName > 1<<30 {
		return fmt.Errorf("mtrc: name limit %d is not in 0 to 2^30", o.MaxName)
	}
	if o.MaxName == 0 {
		o.MaxName = DefaultMaxName
	}
	return nil
}

func syntaxError(offset int64, err error) error {
	return &trace.SyntaxError{Format: wire.Format, Offset: offset, Err: err}
}

func malformed(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, trace.ErrMalformed)...)
}

// errShort says that a record goes on behind what is at hand.
var errShort = errors.New("short")
