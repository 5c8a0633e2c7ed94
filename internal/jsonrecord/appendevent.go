package jsonrecord

import (
	"rtrace-bpf/internal/jsontext"
	"rtrace-bpf/trace"
)

// appendEvent appends the members of a function, a sample or an event.
func appendEvent(b []byte, r *trace.Record) []byte {
	switch r.Kind {
	case trace.KindFunction:
		b = jsontext.AppendText(b, "name", r.Function.Name)
		b = jsontext.AppendAddress(b, "start", r.Function.Start)
		b = jsontext.AppendAddress(b, "end", r.Function.End)
		b = jsontext.AppendText(b, "module", r.Function.Module)
	case trace.KindSample:
		b = jsontext.AppendText(b, "name", r.Sample.Name)
		b = jsontext.AppendUint(b, "weight", r.Sample.Weight)
		b = appendStack(b, &r.Sample.Stack)
	case trace.KindEvent:
		b = jsontext.AppendText(b, "provider", r.Event.Provider)
		b = jsontext.AppendText(b, "name", r.Event.Name)
		b = jsontext.AppendUint(b, "id", uint64(r.Event.ID))
		b = appendStack(b, &r.Event.Stack)
		b = appendArgs(b, r.Event.Args)
		b = jsontext.AppendBytes(b, "data", r.Event.Data)
	}
	return b
}
