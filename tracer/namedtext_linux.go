package tracer

import (
	"fmt"
	"io"
)

// writeNamed prints where named functions are probed.
func (p *Plan) writeNamed(w io.Writer) {
	for i := range p.named {
		n := &p.named[i]
		fmt.Fprintf(w, "named: %s in %s: file offset %#x", n.place(), n.entry.Path, n.entry.Offset)
		switch {
		case n.value != nil:
			fmt.Fprintf(w, ", value %d\n", n.value.ID)
		case n.ways.Stub:
			fmt.Fprintln(w, ", and a return probe")
		default:
			fmt.Fprintf(w, ", %d return instructions\n", len(n.returns))
		}
	}
}
