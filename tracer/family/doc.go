// Package family follows processes and all that come from them, by ptrace: it holds
// each new process before its first instruction, and each that becomes another program
// before that runs, until it is told to let it go.
//
// All else of the processes is left as it is. Signals are passed on, a process that is
// stopped as a job stays stopped until it is continued, and who waits for it is told as
// ever. When the family is closed, or the program ends in whatever way, the kernel lets
// go of all of them, and they run on.
package family
