package naming

import (
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// Callers returns a reader of the records of from, in which each call has its caller:
// function, source file and line. policy selects the frame.
func Callers(from trace.Reader, root *Root, policy resolve.Policy) trace.Reader {
	return resolve.NewCallers(from, root.withLines(), policy.Wrappers())
}

// Online adds the function that made each call, and writes the call at once. The line
// would take as long as reading the debugging information of a large program, while the
// tracer's buffers fill up.
type Online struct {
	callers  *resolve.Callers
	resolver *resolve.Resolver
	to       trace.Writer
}

var _ trace.Writer = (*Online)(nil)

// NewOnline returns a writer to another one. policy selects the frame of the caller.
func NewOnline(to trace.Writer, root *Root, policy resolve.Policy) *Online {
	r := root.withoutLines()
	return &Online{resolve.NewCallers(nil, r, policy.Wrappers()), r, to}
}

// WriteRecord implements trace.Writer.
func (o *Online) WriteRecord(r *trace.Record) error {
	if r.Kind != trace.KindCall {
		o.resolver.Observe(r)
		return o.to.WriteRecord(r)
	}
	r.Call.Caller = o.callers.Caller(r.PID, &r.Call.Stack)
	err := o.to.WriteRecord(r)
	r.Call.Caller = trace.Caller{}
	return err
}

// Flush implements trace.Writer.
func (o *Online) Flush() error { return o.to.Flush() }

// Close implements trace.Writer.
func (o *Online) Close() error { return o.to.Close() }
