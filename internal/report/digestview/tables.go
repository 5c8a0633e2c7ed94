package digestview

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/digest"
	"rtrace-bpf/internal/analysis/sites"
)

// byteTypes lists the resource types whose sizes are bytes, including those of
// sp-rtrace's modules.
var byteTypes = []string{digest.Memory, "pshmmap", "fshmmap", "shmmap", "segment", "address", "gobject", "memtransfer"}

// sized reports whether the sizes of a resource are meaningful. Descriptors and
// the like all have size 1 or 0.
func sized(of *digest.Resource) bool { return of.Largest > 1 }

func inBytes(of *digest.Resource) bool {
	return slices.Contains(byteTypes, of.Type) || strings.Contains(of.Desc, "in bytes")
}

// resource adds the data of a resource. remaining counts the resources still to
// come, including this one.
func (b *builder) resource(of *digest.Resource, remaining int) {
	total := usesOfUse(&of.Total)
	r := resource{
		Type: shorten(sites.Printable(of.Type)), Desc: shorten(sites.Printable(of.Desc)),
		Bytes: inBytes(of), Sized: sized(of), HasFrees: of.Calls.Frees+of.Calls.Reallocs > 0, HasStacks: of.Stacks.Deepest > 0 || of.Stacks.Callers > 0,
		Calls: of.Calls, Total: total, Freed: [2]uint64{of.Freed.Blocks, of.Freed.Bytes},
		PeakEvent: of.PeakEvent, PeakTime: of.PeakTime, PeakBlocks: of.PeakBlocks,
		ByEvent: newCurve(&of.ByEvent), Sizes: binData(of.Sizes), LifeEvents: binData(of.LifeEvents), LifeTimes: [][]uint64{},
		APIs: [][]any{},
	}
	if b.Duration > 0 {
		r.ByTime, r.LifeTimes = newCurve(&of.ByTime), binData(of.LifeTimes)
		if len(b.Resources) >= bothCurves {
			r.ByEvent = nil
		}
	}
	var rows rowsOf
	r.Stacks, rows.places = b.places(of, &total, remaining)
	r.Functions = b.groups(of.Functions, &total)
	r.Modules = b.groups(of.Modules, &total)
	r.Threads, rows.threads = table(b, of.Threads, &total, func(t *digest.Thread) (string, string, *digest.Use) {
		remark := t.Name
		if len(of.Processes) > 1 {
			remark = strings.TrimSpace(remark + " of process " + processName(t.PID))
		}
		return threadName(t), remark, &t.Use
	})
	all, processes := table(b, of.Processes, &total, func(p *digest.Process) (string, string, *digest.Use) {
		return processName(p.PID), p.Name, &p.Use
	})
	r.Processes = all
	b.rowsOf = append(b.rowsOf, rows)
	for i := range of.Threads {
		if row := rows.threads[i]; row >= 0 {
			p := slices.IndexFunc(of.Processes, func(p digest.Process) bool { return p.PID == of.Threads[i].PID })
			r.Threads.Rows[row] = append(r.Threads.Rows[row], processes[p])
		}
	}
	for _, a := range of.APIs[:min(b.limit(), len(of.APIs))] {
		r.APIs = append(r.APIs, []any{b.text(sites.Printable(a.Name)), a.Op.String(), a.Calls, a.Bytes})
	}
	b.Resources = append(b.Resources, r)
}

func threadName(t *digest.Thread) string {
	switch {
	case t.TID:
		return strconv.FormatUint(t.ID, 10)
	case t.ID != 0:
		return "0x" + strconv.FormatUint(t.ID, 16)
	}
	return "unknown"
}

func processName(pid int32) string {
	switch {
	case pid > 0:
		return strconv.Itoa(int(pid))
	case pid < 0:
		return "of trace " + strconv.Itoa(1-int(pid))
	}
	return "unknown"
}

// limit returns the largest number of rows of the next table.
func (b *builder) limit() int { return max(leastRows, min(maxRows, b.rows/4)) }

// groups builds the table of functions or modules: the name, the module of a
// function, its own uses, and its uses with callees.
func (b *builder) groups(groups []digest.Group, whole *uses) group {
	score := make([]float64, len(groups))
	order := make([]int, len(groups))
	for i := range groups {
		self, total := usesOfUse(&groups[i].Self), usesOfUse(&groups[i].Total)
		order[i], score[i] = i, max(self.share(whole), total.share(whole)/4)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(score[y], score[x]) })
	limit := b.limit()
	g := group{Rows: [][]any{}, Left: max(0, len(groups)-limit)}
	b.rows -= min(limit, len(groups))
	for n, i := range order {
		self, total := usesOfUse(&groups[i].Self), usesOfUse(&groups[i].Total)
		if n >= limit {
			g.Rest.add(&self)
			continue
		}
		name, module := groupName(&groups[i].Frame)
		g.Rows = append(g.Rows, []any{b.text(sites.Printable(name)), b.text(sites.Printable(module)), self, total})
	}
	return g
}

// groupName returns the name of a function or module, and the module of a
// function.
func groupName(f *sites.Frame) (name, module string) {
	switch {
	case f.Function != "":
		return f.Function, f.Module
	case f.Addr == 0 && f.Module != "":
		return path.Base(f.Module), f.Module
	case f.Addr == 0:
		return f.String(), ""
	case f.Position != "":
		return f.Position, f.Module
	}
	name = "0x" + strconv.FormatUint(f.Addr, 16)
	if f.Module != "" {
		name += " in " + path.Base(f.Module)
	}
	return name, ""
}

// table builds a table of the items with the largest share in any number. It returns the row of each
// item, too; -1 if it has none.
func table[T any](b *builder, all []T, whole *uses, row func(*T) (name, remark string, u *digest.Use)) (group, []int) {
	rows := make([]int, len(all))
	score := make([]float64, len(all))
	order := make([]int, len(all))
	for i := range all {
		_, _, u := row(&all[i])
		n := usesOfUse(u)
		order[i], score[i] = i, n.share(whole)
	}
	slices.SortStableFunc(order, func(x, y int) int { return cmp.Compare(score[y], score[x]) })
	limit := b.limit()
	g := group{Rows: [][]any{}, Left: max(0, len(all)-limit)}
	b.rows -= min(limit, len(all))
	for n, i := range order {
		name, remark, u := row(&all[i])
		of := usesOfUse(u)
		if n >= limit {
			g.Rest.add(&of)
			rows[i] = -1
			continue
		}
		rows[i] = len(g.Rows)
		g.Rows = append(g.Rows, []any{b.text(sites.Printable(name)), b.text(sites.Printable(remark)), of})
	}
	return g, rows
}
