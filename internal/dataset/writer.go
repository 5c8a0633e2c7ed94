package dataset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"strings"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/jsonrecord"
	"rtrace-bpf/trace"
)

// Writer writes the records of one trace as rows. Calls that belong together as a realloc
// must be one call.
type Writer struct {
	source Source
	files  *files
	namer  Namer

	engine    *aggregate.Engine
	times     times
	traces    int // headers
	resources resourceTypes
	stacks    stackNumbers
	naming    naming
	texts     sites.Names
	modules   map[string]string // build IDs by path
	record    *trace.Record     // the current one
	call      current
	calls     int64
	lost      int64 // events
	cpus      map[int32]*int32
	json      []byte

	blocks    blocks
	estimates estimate.Groups // by number of the stack
	tables    tables
}

// current is what is known of the current call.
type current struct {
	since int64
	timed bool
	stack int64
	seq   int64 // also of the last call, for other records
}

// tables is the open tables of a trace, but for blocks.
type tables struct {
	calls     *table[Call]
	sites     *table[Site]
	stacks    *table[Stack]
	frames    *table[Frame]
	resources *table[Resource]
	mappings  *table[Mapping]
	losses    *table[Loss]
	records   *table[Entry]
	windows   *table[Window]
	estimates *table[Estimate]
	traces    *table[Trace]
}

// New begins to write a trace to the dataset in the directory dir, which is made if it is
// missing. Nothing appears there before Finish. Finish or Discard must be called.
func New(dir string, s Source, namer Namer) (*Writer, error) {
	w := &Writer{
		source: s, namer: namer, engine: aggregate.New(), stacks: newStackNumbers(), modules: make(map[string]string),
		cpus: make(map[int32]*int32), times: times{first: s.First},
	}
	var err error
	if w.files, err = createFiles(dir, &s); err != nil {
		return nil, err
	}
	out := func(name string) io.Writer { return w.files.of[name] }
	id := s.ID
	w.tables = tables{
		calls: newTable[Call](out("calls"), "calls", id), sites: newTable[Site](out("sites"), "sites", id),
		stacks: newTable[Stack](out("stacks"), "stacks", id), frames: newTable[Frame](out("frames"), "frames", id),
		resources: newTable[Resource](out("resources"), "resources", id), mappings: newTable[Mapping](out("mappings"), "mappings", id),
		losses: newTable[Loss](out("losses"), "losses", id), records: newTable[Entry](out("records"), "records", id),
		windows: newTable[Window](out("windows"), "windows", id), estimates: newTable[Estimate](out("estimates"), "estimates", id),
		traces: newTable[Trace](out("traces"), "traces", id),
	}
	w.blocks = blocks{w: w, engine: w.engine, out: newTable[Block](out("blocks"), "blocks", id)}
	w.engine.Keep(&w.blocks)
	return w, nil
}

// Add writes a record. It keeps no reference to the contents of r.
func (w *Writer) Add(r *trace.Record) error {
	w.record = r
	if r.Kind == trace.KindHeader {
		w.traces++
		w.times.header(&r.Header)
	}
	if r.PID == 0 && w.traces > 1 {
		r.PID = 1 - int32(min(w.traces, 1<<30)) // as the engine numbers them
		defer func() { r.PID = 0 }()
	}
	if r.Kind == trace.KindCall {
		w.addCall(r)
		if !w.estimates.Any() { // windows miss frees: what is live is not known
			w.engine.Add(r)
		}
		return nil
	}
	w.observe(r)
	w.estimates.Record(r)
	w.engine.Add(r)
	return w.entry(r)
}

// observe notes what later calls need of a record.
func (w *Writer) observe(r *trace.Record) {
	w.naming.observe(r)
	w.stacks.observe(r)
	switch r.Kind {
	case trace.KindHeader, trace.KindProcess:
		w.namer.Observe(r)
	case trace.KindResource:
		w.resources.declare(r.Resource.ID, strings.Clone(r.Resource.Type))
	case trace.KindModule:
		w.modules[strings.Clone(r.Module.Path)] = strings.Clone(r.Module.BuildID)
	case trace.KindMapping, trace.KindUnmapping:
		w.mapping(r)
	case trace.KindLost:
		w.loss(r)
	}
}

// stackOf returns the number of a stack, which is kept if it is new.
func (w *Writer) stackOf(pid int32, s *trace.Stack, caller *trace.Caller) int64 {
	number, isNew := w.stacks.of(pid, s, caller)
	if isNew {
		w.naming.stack(number, pid, s, caller)
	}
	return number
}

// text returns a text that may be kept.
func (w *Writer) text(s string) string { return w.texts.Text(w.texts.Add(s)) }

func (w *Writer) addCall(r *trace.Record) {
	c := &r.Call
	w.calls++
	w.call.since, w.call.timed = w.times.call(r.Time)
	w.call.stack, w.call.seq = w.stackOf(r.PID, &c.Stack, &c.Caller), int64(c.Seq)
	t := w.tables.calls
	row := t.add()
	row.Trace, row.Call, row.PID, row.TID, row.Thread = w.source.ID, int64(c.Seq), r.PID, r.TID, int64(c.Thread)
	row.Op, row.Function, row.Resource = c.Op.String(), w.text(c.Function), w.resources.typeOf(c.Resource)
	row.Address, row.Stack = int64(c.ID), w.call.stack
	row.Context, row.Index = int64(c.Context), int64(c.Index)
	if w.call.timed {
		row.Since = t.number(w.call.since)
	}
	if r.CPU != 0 {
		row.CPU = w.cpu(r.CPU)
	}
	if c.Op != trace.OpFree {
		row.Size = t.number(int64(c.Size))
	}
	if c.Op == trace.OpMove {
		row.OldAddress = t.number(int64(c.OldID))
		if since, ok := w.times.other(c.EntryTime); ok {
			row.Entered = t.number(since)
		}
	}
	if len(c.Args) > 0 {
		row.Args = argsText(c.Args)
	}
	if w.estimates.Any() {
		row.Window, row.Weight = int64(w.estimates.Number()), t.number(int64(w.estimates.Weight()))
		if (c.Op == trace.OpAlloc || c.Op == trace.OpMove) && row.Resource == aggregate.Memory {
			w.estimates.Add(int(row.Stack), c.Size)
		}
	}
}

// cpu returns a pointer to the number of a processor.
func (w *Writer) cpu(plusOne int32) *int32 {
	n := w.cpus[plusOne]
	if n == nil {
		own := plusOne - 1
		n = &own
		w.cpus[plusOne] = n
	}
	return n
}

// argsText returns arguments as JSON.
func argsText(args []trace.Arg) string {
	type arg struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	all := make([]arg, len(args))
	for i, a := range args {
		all[i] = arg(a)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "" // texts can always be written
	}
	return string(text)
}

// entry writes a record that is no call to the table of records.
func (w *Writer) entry(r *trace.Record) (err error) {
	if w.json, err = jsonrecord.Append(w.json[:0], r); err != nil {
		return err
	}
	t := w.tables.records
	row := t.add()
	row.Trace, row.Number, row.Call, row.PID, row.TID = w.source.ID, t.rows, w.call.seq, r.PID, r.TID
	row.Kind, row.Record = r.Kind.String(), string(bytes.TrimSpace(w.json))
	if since, ok := w.times.other(r.Time); ok {
		row.Since = t.number(since)
	}
	return nil
}

func (w *Writer) mapping(r *trace.Record) {
	m := &r.Mapping
	t := w.tables.mappings
	row := t.add()
	row.Trace, row.PID, row.Event = w.source.ID, r.PID, "map"
	if r.Kind == trace.KindUnmapping {
		row.Event = "unmap"
	}
	row.Start, row.End, row.Offset, row.Path = int64(m.Start), int64(m.End), int64(m.Offset), w.text(m.Path)
	row.BuildID = w.modules[m.Path]
	if since, ok := w.times.other(r.Time); ok {
		row.Since = t.number(since)
	}
}

func (w *Writer) loss(r *trace.Record) {
	l := &r.Lost
	t := w.tables.losses
	row := t.add()
	row.Trace, row.PID, row.Reason, row.Gap = w.source.ID, r.PID, w.text(l.Reason), l.Gap()
	row.Count = int64(l.Count)
	if !row.Gap {
		row.Events = int64(l.Events())
		w.lost += row.Events
	}
	if since, ok := w.times.other(r.Time); ok {
		row.Since = t.number(since)
	}
	if l.Since != 0 && r.Time != 0 {
		row.Duration = t.number(max(0, r.Time-l.Since))
	}
}

// buildID returns the build ID of the program of the trace, or "".
func (w *Writer) buildID() string {
	return cmp.Or(w.modules[w.source.Process.Path], w.modules[w.source.Process.Name])
}
