//go:build unix

package symbol

import "syscall"

// unblocked keeps the opening of a pipe from waiting for its other end, and that
// of a terminal from making it ours.
const unblocked = syscall.O_NONBLOCK | syscall.O_NOCTTY

// noFollow keeps the opening from following a link.
const noFollow = syscall.O_NOFOLLOW
