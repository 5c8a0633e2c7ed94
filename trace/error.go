package trace

import (
	"errors"
	"fmt"
)

// Errors in the input of a decoder. A *SyntaxError wraps them; test with errors.Is.
var (
	ErrTruncated   = errors.New("input ends in the middle of a record")
	ErrUnsupported = errors.New("not supported")
	ErrLimit       = errors.New("exceeds a limit")
	ErrMalformed   = errors.New("malformed")
)

// ErrUnfinished is a kind of ErrTruncated: the input ends after a whole record, but
// without the End that its Header announces or that its format requires. Either the
// input was cut, or its writer did not finish.
var ErrUnfinished error = unfinished{}

type unfinished struct{}

func (unfinished) Error() string { return "the end is missing" }

func (unfinished) Unwrap() error { return ErrTruncated }

// SyntaxError reports where and how the input of a decoder breaks its format.
// Decoders return errors of the underlying reader in other types.
type SyntaxError struct {
	Format string // name of the format
	Offset int64  // bytes from the start of the decoded (uncompressed) input
	Err    error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s: offset %d: %v", e.Format, e.Offset, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }
