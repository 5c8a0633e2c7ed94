package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"rtrace-bpf/internal/printable"
)

// ExitCode is the exit status of a command.
type ExitCode int

// The exit codes that both commands share.
const (
	OK         ExitCode = 0 // done
	Failed     ExitCode = 1 // failed, or ended by a signal
	Usage      ExitCode = 2 // the command line is wrong
	Incomplete ExitCode = 3 // done, but records are missing: lost, or the input was cut

	// BrokenPipe is what a shell shows of a command that SIGPIPE ended: the reader of
	// its output went away.
	BrokenPipe ExitCode = 128 + 13
)

// UsageError says that the command line is wrong.
type UsageError struct {
	Err error
}

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a *UsageError with the given message.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// ErrIncomplete marks that the work was done but records are missing. Wrap it
// with the note to print; see [Incompletef].
var ErrIncomplete = errors.New("incomplete")

// ErrReported is a failure that the user was already told of.
var ErrReported = errors.New("failed; already reported")

type incompleteError struct {
	err error
}

func (e *incompleteError) Error() string { return e.err.Error() }

func (e *incompleteError) Unwrap() []error { return []error{ErrIncomplete, e.err} }

// Incompletef returns an error that wraps [ErrIncomplete] and whose message is
// the given note alone.
func Incompletef(format string, args ...any) error {
	return &incompleteError{err: fmt.Errorf(format, args...)}
}

type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }

func (e *hintError) Unwrap() error { return e.err }

// WithHint returns err with a line that says what the user can do about it.
// It returns nil if err is nil.
func WithHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &hintError{err: err, hint: hint}
}

// Hint returns the outermost hint that err carries, or "".
func Hint(err error) string {
	if h, ok := errors.AsType[*hintError](err); ok {
		return h.hint
	}
	return ""
}

// Code maps an error to the exit code it asks for.
func Code(err error) ExitCode {
	if err == nil {
		return OK
	}
	if _, ok := errors.AsType[*UsageError](err); ok {
		return Usage
	}
	if errors.Is(err, ErrIncomplete) {
		return Incomplete
	}
	return Failed
}

// Report prints what err has to say to the user of the command called name,
// as "NAME: message" and a line "hint: …" if there is one, and returns the
// exit code. Nothing in it can act on a terminal. A reader that went away (EPIPE) is no news and prints nothing, and
// nor does ErrReported.
func Report(w io.Writer, name string, err error) ExitCode {
	code := Code(err)
	if err == nil || errors.Is(err, syscall.EPIPE) || errors.Is(err, ErrReported) {
		return code
	}
	hint := Hint(err)
	message := err.Error()
	if errors.Is(err, context.Canceled) {
		message = "interrupted"
	}
	switch code {
	case Usage:
		if hint == "" {
			hint = "run '" + name + " --help'"
		}
	case Incomplete:
		message = "note: " + message
	}
	fmt.Fprintf(w, "%s: %s\n", name, printable.Text(message))
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", printable.Text(hint))
	}
	return code
}

// FileError puts an error of package os into words: "opening x: permission
// denied". Other errors become "doing path: err". It returns nil if err is nil.
func FileError(doing, path string, err error) error {
	if err == nil {
		return nil
	}
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	} else if l, ok := errors.AsType[*os.LinkError](err); ok {
		err = l.Err
	}
	return fmt.Errorf("%s %s: %w", doing, path, err)
}
