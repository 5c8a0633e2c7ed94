// Package pprof writes profiles in the format of pprof: a protocol buffer,
// compressed with gzip.
package pprof

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/stacks"
)

// Labels of samples.
const (
	LabelThread   = "thread"   // id, and name if known
	LabelProcess  = "process"  // id
	LabelFunction = "function" // allocator function, such as "malloc"
)

// order is the order of values in pprof's own heap profiles.
var order = [...]stacks.Value{stacks.AllocObjects, stacks.AllocSpace, stacks.InuseObjects, stacks.InuseSpace}

// Write writes all values of a profile. v is the value that pprof shows by
// default. Write does not close w.
func Write(w io.Writer, p *stacks.Profile, v stacks.Value) error {
	return build(p, v).Write(w)
}

// builder converts a stacks.Profile to a profile.Profile.
type builder struct {
	from      *stacks.Profile
	to        *profile.Profile
	mappings  map[stacks.Mapping]*profile.Mapping
	functions map[functionKey]*profile.Function
	locations []*profile.Location // by number in from
	processes bool                // whether there are several processes
	values    []stacks.Value      // of each sample
}

type functionKey struct{ name, system, file string }

func build(p *stacks.Profile, v stacks.Value) *profile.Profile {
	b := builder{
		from: p,
		to: &profile.Profile{
			DefaultSampleType: v.String(), Period: 1, PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"},
			TimeNanos: p.Start, DurationNanos: p.Duration,
		},
		mappings: make(map[stacks.Mapping]*profile.Mapping), functions: make(map[functionKey]*profile.Function),
	}
	for _, c := range p.Comments {
		b.to.Comments = append(b.to.Comments, sites.Printable(c))
	}
	for _, value := range order {
		if slices.Contains(p.Known(), value) {
			b.values = append(b.values, value)
		}
	}
	for _, value := range b.values {
		b.to.SampleType = append(b.to.SampleType, &profile.ValueType{Type: value.String(), Unit: value.Unit()})
	}
	b.addMappings()
	for i := range p.Locations {
		b.locations = append(b.locations, b.location(&p.Locations[i]))
	}
	for i := range p.Samples {
		b.processes = b.processes || p.Samples[i].PID != p.Samples[0].PID
	}
	for i := range p.Samples {
		b.to.Sample = append(b.to.Sample, b.sample(&p.Samples[i]))
	}
	return b.to
}

// addMappings adds the mappings by address, but the program's own first,
// because pprof takes the first mapping for the program.
func (b *builder) addMappings() {
	known := make(map[stacks.Mapping]bool) // whether all locations have functions
	for i := range b.from.Locations {
		l := &b.from.Locations[i]
		if l.Mapping != (stacks.Mapping{}) {
			all, seen := known[l.Mapping]
			known[l.Mapping] = len(l.Lines) > 0 && (all || !seen)
		}
	}
	list := make([]stacks.Mapping, 0, len(known))
	for m := range known {
		list = append(list, m)
	}
	slices.SortFunc(list, func(x, y stacks.Mapping) int {
		return cmp.Or(
			cmp.Compare(b.rank(&x), b.rank(&y)), cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End),
			cmp.Compare(x.Path, y.Path), cmp.Compare(x.Offset, y.Offset), cmp.Compare(x.BuildID, y.BuildID),
		)
	})
	for _, m := range list {
		// pprof looks up names for locations without functions in the file.
		// Without a known offset it would find the wrong ones.
		has := known[m] || !m.Placed
		added := &profile.Mapping{
			ID: uint64(len(b.to.Mapping) + 1), Start: m.Start, Limit: m.End, Offset: m.Offset,
			File: sites.Printable(m.Path), BuildID: sites.Printable(m.BuildID),
			HasFunctions: has, HasFilenames: has, HasLineNumbers: has, HasInlineFrames: has,
		}
		b.mappings[m] = added
		b.to.Mapping = append(b.to.Mapping, added)
	}
}

// rank returns 0 for the mapping of the program itself and 1 for others.
func (b *builder) rank(m *stacks.Mapping) int {
	const most = 15 // length of the kernel's process names (TASK_COMM_LEN less the NUL)
	name, file := path.Base(b.from.Name), path.Base(m.Path)
	if b.from.Name != "" && (file == name || len(name) == most && strings.HasPrefix(file, name)) {
		return 0
	}
	return 1
}

func (b *builder) location(l *stacks.Location) *profile.Location {
	to := &profile.Location{ID: uint64(len(b.to.Location) + 1), Mapping: b.mappings[l.Mapping]}
	if l.Addr != 0 {
		to.Address = l.Addr - 1 // inside the call instruction
	}
	lines := l.Lines
	if len(lines) == 0 && (l.Addr == 0 || to.Mapping == nil) {
		// For other locations pprof itself prints the address or the file.
		lines = []stacks.Line{{Function: l.Name()}}
	}
	for i := range lines {
		to.Line = append(to.Line, profile.Line{
			Function: b.function(&lines[i]), Line: int64(min(lines[i].Line, math.MaxInt64)),
		})
	}
	b.to.Location = append(b.to.Location, to)
	return to
}

// function returns the function of a line. It sets the system name only if it
// differs from the name, because pprof derives shorter names from equal ones.
func (b *builder) function(l *stacks.Line) *profile.Function {
	key := functionKey{sites.Printable(l.Function), sites.Printable(l.System), sites.Printable(l.File)}
	if key.system == key.name {
		key.system = ""
	}
	if f := b.functions[key]; f != nil {
		return f
	}
	f := &profile.Function{ID: uint64(len(b.to.Function) + 1), Name: cmp.Or(key.name, sites.Unknown), SystemName: key.system, Filename: key.file}
	b.functions[key] = f
	b.to.Function = append(b.to.Function, f)
	return f
}

func (b *builder) sample(s *stacks.Sample) *profile.Sample {
	to := &profile.Sample{Label: make(map[string][]string)}
	for _, n := range s.Stack {
		to.Location = append(to.Location, b.locations[n])
	}
	for _, v := range b.values {
		to.Value = append(to.Value, int64(min(v.Of(&s.Usage), math.MaxInt64)))
	}
	if s.Function != "" {
		to.Label[LabelFunction] = []string{sites.Printable(s.Function)}
	}
	if text := b.thread(s); text != "" {
		to.Label[LabelThread] = []string{text}
	}
	if b.processes && s.PID > 0 {
		to.Label[LabelProcess] = []string{strconv.Itoa(int(s.PID))}
	}
	return to
}

// thread returns the label for the thread of a sample.
func (b *builder) thread(s *stacks.Sample) string {
	switch {
	case s.TID != 0:
		text := strconv.Itoa(int(s.TID))
		if b.from.Threads != nil {
			if name := b.from.Threads(s.PID, s.TID); name != "" {
				text += " " + sites.Printable(name)
			}
		}
		return text
	case s.Thread != 0:
		return fmt.Sprintf("0x%x", s.Thread)
	}
	return ""
}
