package trace

import (
	"errors"
	"fmt"
)

// What can be wrong with the input of a decoder. They are wrapped in a
// *SyntaxError; test with errors.Is.
var (
	ErrTruncated   = errors.New("input ends in the middle of a record")
	ErrUnsupported = errors.New("not supported")
	ErrLimit       = errors.New("exceeds a limit")
	ErrMalformed   = errors.New("malformed")
)

// ErrUnfinished is a kind of ErrTruncated: the input ends between two records, but
// without the End that it announces or that its format demands. The input was cut,
// or its writer did not finish.
var ErrUnfinished error = unfinished{}

type unfinished struct{}

func (unfinished) Error() string { return "the end is missing" }

func (unfinished) Unwrap() error { return ErrTruncated }

// SyntaxError says where and how the input of a decoder breaks its format.
// Errors of the underlying reader are passed on as they are instead.
type SyntaxError struct {
	Format string // name of the format
	Offset int64  // bytes from the start of the decoded (uncompressed) input
	Err    error
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s: offset %d: %v", e.Format, e.Offset, e.Err)
}

func (e *SyntaxError) Unwrap() error { return e.Err }
