package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
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

	// BrokenPipe is the status that a shell shows for a command that SIGPIPE ended: the
	// reader of its output went away.
	BrokenPipe ExitCode = 128 + 13
)

// UsageError means that the command line is wrong.
type UsageError struct {
	Err error
}

func (e *UsageError) Error() string { return e.Err.Error() }

func (e *UsageError) Unwrap() error { return e.Err }

// Usagef returns a *UsageError with the given message.
func Usagef(format string, args ...any) error {
	return &UsageError{Err: fmt.Errorf(format, args...)}
}

// ErrIncomplete means that the work was done but records are missing. Wrap it with the note
// to print; see [Incompletef].
var ErrIncomplete = errors.New("incomplete")

// ErrReported is a failure that was already reported to the user.
var ErrReported = errors.New("failed; already reported")

type incompleteError struct {
	err error
}

func (e *incompleteError) Error() string { return e.err.Error() }

func (e *incompleteError) Unwrap() []error { return []error{ErrIncomplete, e.err} }

// Incompletef returns an error that wraps [ErrIncomplete]. Its message is only the given
// note.
func Incompletef(format string, args ...any) error {
	return &incompleteError{err: fmt.Errorf(format, args...)}
}

type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }

func (e *hintError) Unwrap() error { return e.err }

// WithHint returns err with a line about what the user can do. It returns nil if err is nil.
func WithHint(err error, hint string) error {
	if err == nil {
		return nil
	}
	return &hintError{err: err, hint: hint}
}

// Hint returns the outermost hint of err, or "".
func Hint(err error) string {
	if h, ok := errors.AsType[*hintError](err); ok {
		return h.hint
	}
	return ""
}

// Code returns the exit code for an error.
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

// Report prints err for the user of the command called name, as "NAME: message" and a line
// "hint: …" if there is a hint, and returns the exit code. It removes everything that could
// affect a terminal. A [Log] gets one record. It prints nothing for a reader that went away (EPIPE) and for
// ErrReported.
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
		if l, ok := w.(*Log); ok {
			l.report(slog.LevelWarn, name, message, hint)
			return code
		}
		message = "note: " + message
	}
	if l, ok := w.(*Log); ok {
		l.report(slog.LevelError, name, message, hint)
		return code
	}
	fmt.Fprintf(w, "%s: %s\n", name, printable.Text(message))
	if hint != "" {
		fmt.Fprintf(w, "hint: %s\n", printable.Text(hint))
	}
	return code
}

// FileError describes an error of package os in words: "opening x: permission denied". Other
// errors become "doing path: err". It returns nil if err is nil.
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
