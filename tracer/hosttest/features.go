// Package hosttest imitates kernels that lack features, for tests.
package hosttest

// Features implements host.Features for a kernel that offers everything except what it has
// an error for. The keys are the names of the methods.
type Features map[string]error

// Capabilities implements host.Features.
func (f Features) Capabilities() error { return f["Capabilities"] }

// Types implements host.Features.
func (f Features) Types() error { return f["Types"] }

// KernelReads implements host.Features.
func (f Features) KernelReads() error { return f["KernelReads"] }

// PerfUprobes implements host.Features.
func (f Features) PerfUprobes() error { return f["PerfUprobes"] }

// RingBuffer implements host.Features.
func (f Features) RingBuffer() error { return f["RingBuffer"] }

// AttachCookie implements host.Features.
func (f Features) AttachCookie() error { return f["AttachCookie"] }

// TaskStorage implements host.Features.
func (f Features) TaskStorage() error { return f["TaskStorage"] }

// Loop implements host.Features.
func (f Features) Loop() error { return f["Loop"] }

// UprobeMulti implements host.Features.
func (f Features) UprobeMulti() error { return f["UprobeMulti"] }

// NarrowSteps implements host.Features.
func (f Features) NarrowSteps() error { return f["NarrowSteps"] }
