// Package proc reads what Linux tells about a process under /proc: its
// mappings, its state, its threads and its program file.
//
// The Parse functions are pure and work on every system; what reads /proc
// itself exists on Linux only. The formats are those of the kernel's
// Documentation/filesystems/proc.rst.
package proc

import "errors"

// What callers branch on. They are wrapped with the process and what was being
// done; test with errors.Is.
var (
	// ErrNoProcess says that no process or thread has the id.
	ErrNoProcess = errors.New("no such process")
	// ErrGone says that the process ended while it was read.
	ErrGone = errors.New("process ended while it was read")
	// ErrNoProgram says that the process runs no program: it is a kernel
	// thread, or a zombie that waits for its parent.
	ErrNoProgram = errors.New("process has no program")
	// ErrSyntax says that a file under /proc has not the form that the kernel
	// documents.
	ErrSyntax = errors.New("unexpected form")
)
