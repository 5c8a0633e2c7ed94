// Package remote lets one run of rtrace-bpf tell another what to do: the one that
// traces a given process. They meet at a socket with a name in the abstract namespace
// of Linux, which ends with the process that has it, however that ends; so both must
// be in one network namespace. Only root and the user who traces are heard, and only
// root and the caller's own user are believed.
package remote
