package resolve

import (
	"slices"
	"strings"

	"rtrace-bpf/trace"
)

// filterName is the entry in a trace's header for a trace whose frames have names.
const filterName = "resolve"

// Reader passes records on and gives the frames of calls their texts. Texts that are
// already there are kept, unless Replace is set and the function is known. The stacks that
// it returns are valid until the next call.
type Reader struct {
	Replace bool

	from     trace.Reader
	resolver *Resolver
	names    []string
}

var _ trace.Reader = (*Reader)(nil)

// NewReader returns a Reader that reads from from and resolves addresses with r.
func NewReader(from trace.Reader, r *Resolver) *Reader {
	return &Reader{from: from, resolver: r}
}

// ReadRecord reads the next record. Errors are those of the underlying reader.
func (rd *Reader) ReadRecord(rec *trace.Record) error {
	if err := rd.from.ReadRecord(rec); err != nil {
		return err
	}
	switch rec.Kind {
	case trace.KindCall:
		rd.resolve(rec)
	case trace.KindHeader:
		rd.resolver.Observe(rec)
		rec.Header.Filter = WithFilter(rec.Header.Filter)
	default:
		rd.resolver.Observe(rec)
	}
	return nil
}

// resolve fills in the missing texts of a stack.
func (rd *Reader) resolve(rec *trace.Record) {
	stack := &rec.Call.Stack
	if len(stack.Frames) == 0 {
		return
	}
	rd.names = slices.Grow(rd.names[:0], len(stack.Frames))[:len(stack.Frames)]
	clear(rd.names[copy(rd.names, stack.Names):])
	p := rd.resolver.Process(rec.PID)
	for i, addr := range stack.Frames {
		rd.names[i] = p.Better(addr, rd.names[i], rd.Replace)
	}
	stack.Names = rd.names
}

// WithFilter adds this filter to the list of applied filters in the header of a trace.
func WithFilter(list string) string {
	switch {
	case list == "":
		return filterName
	case slices.Contains(strings.Split(list, "|"), filterName):
		return list
	}
	return list + "|" + filterName
}
