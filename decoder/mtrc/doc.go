// Package mtrc reads the tracing files of mpatrol: 32-bit and 64-bit, in either byte
// order, of all versions up to 1.5.99, whole or cut, with one stream or several in a
// row. docs/formats/mtrc.md describes the format.
//
// [Scanner] returns the events as they are in the file, [Reader] returns records.
package mtrc

import (
	"errors"
	"fmt"

	wire "rtrace-bpf/internal/wire/mtrc"
	"rtrace-bpf/trace"
)

// DefaultMaxName is the limit of a name in bytes unless Options sets another. Real
// writers keep names within wire.MaxName bytes.
const DefaultMaxName = 1 << 20

// Options are the options for reading. The zero value reads as much as possible.
type Options struct {
	// Strict makes an error of everything that no writer produces: ids of names that
	// are undefined, definitions of id 0, bytes after the last trailer, a stream
	// without a trailer before another stream, and for a Reader events that contradict
	// earlier ones.
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

// errShort is the error for a record that continues after the available bytes.
var errShort = errors.New("short")
