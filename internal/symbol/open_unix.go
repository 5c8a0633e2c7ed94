//go:build unix

package symbol

import "syscall"

// unblocked keeps open from waiting for the other end of a pipe, and from making a terminal
// the process's controlling terminal.
const unblocked = syscall.O_NONBLOCK | syscall.O_NOCTTY

// noFollow keeps open from following a symbolic link.
const noFollow = syscall.O_NOFOLLOW
