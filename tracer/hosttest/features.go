// Package hosttest has kernels that lack features, for tests.
package hosttest

// Features is a kernel that offers everything but what it has an error for. The keys are
// the names of the methods of the tracer's Features.
type Features map[string]error

// Capabilities returns the error of that name.
func (f Features) Capabilities() error { return f["Capabilities"] }

// Types returns the error of that name.
func (f Features) Types() error { return f["Types"] }

// KernelReads returns the error of that name.
func (f Features) KernelReads() error { return f["KernelReads"] }

// PerfUprobes returns the error of that name.
func (f Features) PerfUprobes() error { return f["PerfUprobes"] }

// RingBuffer returns the error of that name.
func (f Features) RingBuffer() error { return f["RingBuffer"] }

// AttachCookie returns the error of that name.
func (f Features) AttachCookie() error { return f["AttachCookie"] }

// TaskStorage returns the error of that name.
func (f Features) TaskStorage() error { return f["TaskStorage"] }

// Loop returns the error of that name.
func (f Features) Loop() error { return f["Loop"] }

// UprobeMulti returns the error of that name.
func (f Features) UprobeMulti() error { return f["UprobeMulti"] }

// NarrowSteps returns the error of that name.
func (f Features) NarrowSteps() error { return f["NarrowSteps"] }
