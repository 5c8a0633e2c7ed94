// Package proc reads what Linux provides about a process under /proc: its mappings, its state,
// its threads and its program file.
//
// The Parse functions are pure and work on every system. What reads /proc itself exists only on
// Linux. The formats are those of the kernel's Documentation/filesystems/proc.rst.
package proc

import "errors"

// Errors that callers distinguish. They are wrapped with the process and the operation; test
// for them with errors.Is.
var (
	// ErrNoProcess reports that no process or thread has the ID.
	ErrNoProcess = errors.New("no such process")
	// ErrGone reports that the process ended while it was read.
	ErrGone = errors.New("process ended while it was read")
	// ErrNoProgram reports that the process runs no program: it is a kernel thread, or a zombie
	// whose parent has not waited for it.
	ErrNoProgram = errors.New("process has no program")
	// ErrSyntax reports that a file under /proc does not have the form that the kernel
	// documents.
	ErrSyntax = errors.New("unexpected form")
)
