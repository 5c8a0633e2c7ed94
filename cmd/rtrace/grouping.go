package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/decoder"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/shortname"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/internal/topview"
)

// groupFlags are the flags of commands that add up blocks with a common key.
type groupFlags struct {
	blockFlags
	names  nameFlags
	by     string
	depth  int
	top    int
	caller string

	key    sites.Key
	builds map[string]string // gets the build ID of each position without a function, unless it is nil
}

// keyList explains the values of --by.
var keyList = cli.List{Title: "Keys", Rows: []cli.ListRow{
	{Name: "stack", Text: "the whole stack, or its --max-stack innermost frames; without stacks, function and line"},
	{Name: "function", Text: "the function that called the allocator; see also --caller"},
	{Name: "file, line", Text: "its source file, or file and line, from the trace or from debugging information"},
	{Name: "module", Text: "its program or library"},
	{Name: "size", Text: "the size of the block"},
	{Name: "thread", Text: "the thread that allocated the block"},
	{Name: "process", Text: "the process, in a trace of several processes"},
}}

// commonGroupFlags lists the flags that most users of a command with groupFlags, a
// window and --min-size need; own are those of the command itself.
func commonGroupFlags(own ...cli.ListRow) []cli.ListRow {
	return slices.Concat(
		[]cli.ListRow{{Name: "by"}, {Name: "top"}, {Name: "max-stack"}, {Name: "no-resolve"}, {Name: "min-size"}},
		own,
		[]cli.ListRow{{Name: "from"}, {Name: "to", Text: "end at POINT instead of the end"}, {Name: "json"}},
	)
}

func (g *groupFlags) addGroups(f *pflag.FlagSet, by sites.Key) {
	f.Var(groups.Word(&g.by, by.String(), sites.KeyNames()...), "by", "add up the blocks with the same `KEY`; see Keys")
	f.VarP(groups.Number(&g.depth, 0, 0, groups.Unbounded), "max-stack", "n", "use the innermost `N` frames of each stack (default: all)")
	f.Var(groups.Number(&g.top, 0, 0, groups.Unbounded), "top", "print only the `N` largest groups (default: all)")
}

func (g *groupFlags) addGroupNames(f *pflag.FlagSet) {
	g.names.add(f)
	f.BoolVarP(&g.addresses, "addresses", "a", false, "distinguish places within a function by address")
	f.Var(groups.Word(&g.caller, resolve.Program.String(), resolve.Policies()...), "caller", "take function, file and line from the innermost frame of `WHAT`: program (that is not one of a wrapper, if there is one) or innermost (the same as --show-wrappers)")
}

// readGroups reads the flags whose values need more than parsing.
func (g *groupFlags) readGroups() error {
	g.key, _ = sites.ParseKey(g.by)
	if policy, _ := resolve.ParsePolicy(g.caller); policy == resolve.Innermost {
		g.names.wrappers = true
	}
	return g.names.check()
}

// grouping makes groups of blocks; r knows the mappings.
func (g *groupFlags) grouping(r *resolve.Resolver) sites.Options {
	o := sites.Options{
		By: g.key, Depth: g.depth, Addresses: g.addresses, Framer: g.names.framer(r),
		Module: func(pid int32, addr uint64) string {
			_, module, _ := r.Process(pid).Name(addr)
			return module
		},
	}
	if g.builds != nil {
		o.Framer.Position = func(pid int32, addr uint64) string {
			of := r.Process(pid)
			position := of.Position(addr)
			if m, ok := of.Mapping(addr); ok {
				g.builds[position] = m.BuildID
			}
			return position
		}
	}
	if g.names.wanted() {
		o.Caller = resolve.NewCallers(nil, r, g.names.list).Find
	}
	return o
}

// observeLate passes the late mappings of a trace to r: in some formats a mapping may come
// after calls from there. The file must be readable twice.
func (b *blockFlags) observeLate(ctx context.Context, r *resolve.Resolver, in *input, file string) {
	if lateMappings(in.Format) {
		observeMappings(ctx, r, file, decoder.Options{Strict: b.in.strict, NoSide: b.in.noSide})
	}
}

// groupTexts prints what the blocks of a group have in common.
type groupTexts struct {
	key   sites.Key
	stats *callStats
}

// texts returns the lines for that.
func (x *groupTexts) texts(g *sites.Group) []string {
	switch x.key {
	case sites.BySize:
		return []string{plural(g.Size, "byte")}
	case sites.ByThread:
		return []string{x.thread(g.PID, g.TID, g.Thread)}
	case sites.ByProcess:
		return []string{x.process(g.PID)}
	}
	texts := make([]string, len(g.Frames))
	for i := range g.Frames {
		texts[i] = x.frame(&g.Frames[i])
	}
	return texts
}

// severalLines reports whether one of the groups needs more than one line.
func (x *groupTexts) severalLines(groups []*sites.Group) bool {
	return slices.ContainsFunc(groups, func(g *sites.Group) bool { return len(x.texts(g)) > 1 })
}

// frame prints a frame, with the address if it is part of the key.
func (x *groupTexts) frame(f *sites.Frame) string {
	switch {
	case x.key == sites.ByFile && f.File != "":
		return f.File
	case x.key == sites.ByModule && f.Module != "":
		return f.Module
	case f.Function != "" && f.Addr != 0:
		return f.Address() + " " + shownFrame(f)
	}
	return shownFrame(f)
}

// mostName is the most columns of a function's name in a table.
const mostName = 100

// shownFrame prints a frame for people: with a short name of the function, and the file
// without its folder.
func shownFrame(f *sites.Frame) string {
	shown := *f
	shown.Function = topview.Shorten(shortname.Of(f.Function), mostName)
	shown.File = base(f.File)
	return shown.String()
}

// process returns the name of a process.
func (x *groupTexts) process(pid int32) string {
	switch {
	case pid > 0:
		return strconv.Itoa(int(pid))
	case x.stats.traces > 1:
		return fmt.Sprintf("that of trace %d of the file", 1-int(traceOf(pid)))
	}
	return sites.Unknown
}

// thread returns the name of a thread.
func (x *groupTexts) thread(pid, tid int32, thread uint64) string {
	switch {
	case tid == 0 && thread != 0:
		return fmt.Sprintf("0x%x", thread)
	case tid == 0:
		return sites.Unknown
	}
	if name := x.stats.threads[threadKey{pid, tid}]; name != "" {
		return fmt.Sprintf("%d %s", tid, sites.Printable(name))
	}
	return strconv.Itoa(int(tid))
}

// groupIdentity is the key of a group in JSON.
type groupIdentity struct {
	Frames []leakFrame `json:"frames,omitempty"`
	Size   *uint64     `json:"size,omitempty"`
	PID    int32       `json:"pid,omitempty"` // -1 for the second trace of a file that names no process, and so on
	TID    int32       `json:"tid,omitempty"`
	Thread string      `json:"thread,omitempty"` // the thread as the program identifies it
}

func (x *groupTexts) identity(g *sites.Group) groupIdentity {
	id := groupIdentity{PID: g.PID, TID: g.TID, Thread: threadText(g.Thread)}
	if x.key == sites.BySize {
		id.Size = &g.Size
	}
	for i := range g.Frames {
		f := &g.Frames[i]
		id.Frames = append(id.Frames, leakFrame{f.Address(), f.Position, f.Function, f.File, f.Line, f.Module})
	}
	return id
}
