// Package family follows processes and all their descendants with ptrace. It holds each new
// process before its first instruction, and each process that executes another program before
// that program runs, until the caller lets it go.
//
// Nothing else about the processes changes. Signals are passed on, a process that is stopped as a
// job stays stopped until it is continued, and parents see the same wait status as without
// tracing. When the family is closed, or this program ends in any way, the kernel releases all
// processes, and they continue to run.
package family
