package plan

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"rtrace-bpf/internal/printable"
	"rtrace-bpf/tracer/process"
	"rtrace-bpf/tracer/site"
)

// WriteText prints the plan, for rtrace-bpf plan: the allocators, the mechanisms, and each function
// with its file, its site and the cost of a hit.
func (p *Plan) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "process %d (%s)\n", p.Target.PID, printable.Name(p.Target.Name))
	writeAllocators(w, p.Memory.Allocators)
	fmt.Fprintf(w, "attach %s, sites known by %s, thread state in %s, %s\n", p.Mechanisms.Attach,
		sitesText(p.Mechanisms.Sites), stateText(p.Mechanisms.State), bufferText(p.Options.Buffer))
	fmt.Fprintf(w, "stacks %s\n\n", stackText(&p.Options))
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "FUNCTION\tFILE\tADDRESS\tSITE\tINSTRUCTION\tCOST\tPROBES\tARGUMENTS\tALIASES")
	for i := range p.Memory.Functions {
		f := &p.Memory.Functions[i]
		fmt.Fprintf(table, "%s\t%s\t%#x\t+%d\t%s\t%s\t%s\t%s\t%s\n", f.Name, filepath.Base(f.Probe.Path), f.symbol.Addr, f.Site.Offset,
			f.Site.Insn, f.Site.Cost, probesText(f), argumentsText(f, p.Target.Machine), strings.Join(f.Aliases, " "))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := writePaths(w, p.Memory.Functions, p.Target.Machine); err != nil {
		return err
	}
	if err := writeOperators(w, p.Memory.Operators); err != nil {
		return err
	}
	if err := writeNews(w, p.Memory.News); err != nil {
		return err
	}
	if err := writeGrowths(w, p.Memory.Growths, p.Target.Machine); err != nil {
		return err
	}
	writeFunctions(w, p.Functions.Probes)
	for _, probe := range p.Layout.Loader {
		fmt.Fprintf(w, "\nmappings: %s of %s\n", probe.Function, probe.Path)
	}
	for _, probe := range p.Layout.internal {
		fmt.Fprintf(w, "left out: the allocator's own call of free at file offset %#x\n", probe.Offset)
	}
	for i := range p.Memory.Functions {
		writeWarnings(w, &p.Memory.Functions[i])
	}
	return nil
}

// writeAllocators prints the allocators: the traced ones, then those that are left out.
func writeAllocators(w io.Writer, all []Allocator) {
	for _, traced := range []bool{true, false} {
		what := "allocator"
		if !traced {
			what = "left out: allocator"
		}
		for i := range all {
			if a := &all[i]; a.Traced == traced {
				fmt.Fprintf(w, "%s %s: %s: %s\n", what, a.Path, a.Name(), a.Why)
			}
		}
	}
}

// writeOperators prints the C++ operators that give their names to the calls that they make.
func writeOperators(w io.Writer, all []Function) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "OPERATOR THAT GIVES ITS NAME\tADDRESS\tSITE\tINSTRUCTION\tCOST\tFILE\tALIASES")
	for i := range all {
		f := &all[i]
		fmt.Fprintf(table, "%s\t%#x\t+%d\t%s\t%s\t%s\t%s\n", f.Name, f.symbol.Addr, f.Site.Offset,
			f.Site.Insn, f.Site.Cost, f.Probe.Path, strings.Join(f.Aliases, "; "))
	}
	return table.Flush()
}

// writeNews prints the operators new that give their names by the return address of a call.
func writeNews(w io.Writer, files map[process.FileID][]OperatorCode) error {
	all := slices.Concat(slices.Collect(maps.Values(files))...)
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b OperatorCode) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Start, b.Start))
	})
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "OPERATOR THAT NAMES CALLS FROM ITS CODE\tADDRESS\tBYTES\tFILE\tALIASES")
	for i := range all {
		op := &all[i]
		fmt.Fprintf(table, "%s\t%#x\t%d\t%s\t%s\n", op.Name, op.Start, op.End-op.Start, op.Path, strings.Join(op.Aliases, "; "))
	}
	return table.Flush()
}

// writeGrowths prints the allocator's calls for memory: the address of the call, which the
// kernel always emulates, and the site after it.
func writeGrowths(w io.Writer, all []Growth, m *process.Machine) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "HEAP GROWTH\tCALLED AT\tSITE AFTER\tINSTRUCTION\tCOST\tRESULT\tCOUNTS")
	for i := range all {
		g := &all[i]
		counts := "always"
		if g.Nested {
			counts = "inside the functions above"
		}
		fmt.Fprintf(table, "%s\t%#x\t+%d\t%s\t%s\t%s\t%s\n", g.Function, g.addr, g.Site.Offset, g.Site.Insn,
			g.Site.Cost, m.Place(g.Site.Args[0].Reg), counts)
	}
	return table.Flush()
}

func stateText(s State) string {
	if s == StateTask {
		return "task storage"
	}
	return "a hash by thread"
}

func sitesText(s Sites) string {
	if s == SitesCookie {
		return "cookie"
	}
	return "address"
}

func bufferText(b Buffer) string {
	if b == BufferPerf {
		return "perf event buffers"
	}
	return "BPF ring buffers"
}

// stackText describes how stacks are found.
func stackText(o *Options) string {
	depth := o.Frames()
	if depth == 0 {
		return "none"
	}
	way := map[Unwind]string{
		UnwindAuto: "by unwind tables, and by frame pointers where code has none",
		UnwindEH:   "by unwind tables alone",
		UnwindFP:   "by frame pointers alone", UnwindHelper: "by the kernel's helper",
	}[o.Unwind]
	return fmt.Sprintf("%s, at most %d frames", way, depth)
}

// probesText describes a function's probes.
func probesText(f *Function) string {
	switch {
	case f.paths.covered():
		return fmt.Sprintf("%d inside", len(f.paths.sites))
	case f.Returns:
		return "entry+return"
	case f.ends != nil:
		return fmt.Sprintf("entry+%d exits (%s)", len(f.ends.returns)+len(f.ends.jumps), f.ends.cost)
	}
	return "entry"
}

// argumentsText lists the places from which the probe reads the arguments.
func argumentsText(f *Function, m *process.Machine) string {
	var all []string
	for i, arg := range f.arguments() {
		place := f.Site.Args[i]
		what := "block"
		switch arg {
		case f.row.size:
			what = "size"
		case f.row.count:
			what = "count"
		case f.row.alignment - 1:
			what = "alignment"
		}
		if place.Product {
			if arg == f.row.count {
				continue // the register of the size has the product
			}
			what += "*count"
		}
		all = append(all, what+"="+m.Place(place.Reg))
	}
	return strings.Join(all, " ")
}

// writeWarnings prints a warning if hits of the site are expensive, or if the function only jumps to
// code that is not probed.
func writeWarnings(w io.Writer, f *Function) {
	if f.Site.Cost == site.SingleStep {
		fmt.Fprintf(w, "warning: %s has no suitable instruction that the kernel emulates: each call costs a single step more\n", f.Name)
	}
	if f.Site.Thunk != nil && len(f.Site.TailCalls) == 0 {
		fmt.Fprintf(w, "warning: %s only jumps to another function\n", f.Name)
	}
}
