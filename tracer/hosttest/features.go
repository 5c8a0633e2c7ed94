// Package hosttest has kernels that lack features, for tests.
package hosttest

// Features is a kernel that offers everything but what it has an error for. The keys are
// the names of the methods of the tracer's Features.
type Features map[string]error

func (f Features) Capabilities() error { return f["Capabilities"] }
func (f Features) Types() error        { return f["Types"] }
func (f Features) KernelReads() error  { return f["KernelReads"] }
func (f Features) PerfUprobes() error  { return f["PerfUprobes"] }
func (f Features) RingBuffer() error   { return f["RingBuffer"] }
func (f Features) AttachCookie() error { return f["AttachCookie"] }
func (f Features) TaskStorage() error  { return f["TaskStorage"] }
func (f Features) Loop() error         { return f["Loop"] }
func (f Features) UprobeMulti() error  { return f["UprobeMulti"] }
func (f Features) NarrowSteps() error  { return f["NarrowSteps"] }
