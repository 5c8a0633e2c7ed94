// Package remote lets one run of rtrace-bpf send requests to another one that traces a given
// process. They connect through a socket with a name in the abstract namespace of Linux. It
// disappears with the process that has it, however that ends, and both must be in the same
// network namespace. A tracer accepts requests only from root and from its own user, and a
// caller accepts answers only from root and from its own user.
package remote
