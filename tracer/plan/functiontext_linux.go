package plan

import (
	"fmt"
	"io"
)

// writeFunctions prints where traced functions are probed, a line for each.
func writeFunctions(w io.Writer, all []FunctionProbe) {
	for i := range all {
		n := &all[i]
		fmt.Fprintf(w, "function: %s in %s: file offset %#x", n.Place(), n.Entry.Path, n.Entry.Offset)
		switch {
		case n.Value != nil:
			fmt.Fprintf(w, ", value %d\n", n.Value.ID)
		case n.Ways.Stub:
			fmt.Fprintln(w, ", and a return probe")
		default:
			fmt.Fprintf(w, ", %d return instructions\n", len(n.Returns))
		}
	}
}
