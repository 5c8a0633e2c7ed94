package dotnet

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"time"

	diagnostics "rtrace-bpf/internal/linux/dotnet"
	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
)

// PerfMap is a writer that names the code in stacks that a runtime has compiled. At the end of
// the trace it writes the functions in the perf map that stacks contain, because the file may be
// gone when the trace is read. It can make a .NET runtime write a perf map.
type PerfMap struct {
	trace.Writer // where records go; set before the first one

	client *diagnostics.Client // nil if the runtime writes a perf map by itself, or none
	file   *diagnostics.PerfMap
	pid    int32
	line   *status.Line
	recent [1 << 13]uint64     // frames of the last stacks
	frames map[uint64]struct{} // all, up to maxCompiled
	last   int64               // time of the last record
	ended  bool
}

// maxCompiled is how many frames are looked up at most.
const maxCompiled = 1 << 18

// perfMapEnd is how long to wait for the end of a perf map: a process that is stopped does
// not answer.
const perfMapEnd = 2 * time.Second

// NewPerfMap makes the runtime of a process write a perf map.
func NewPerfMap(ctx context.Context, pid int, line *status.Line) (*PerfMap, error) {
	client, err := diagnostics.Find(pid)
	if err != nil {
		return nil, err
	}
	file, err := diagnostics.FindPerfMap(pid)
	if err != nil {
		return nil, err
	}
	if err := client.EnablePerfMap(ctx); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &PerfMap{client: client, file: file, pid: int32(pid), line: line, frames: make(map[uint64]struct{})}, nil
}

// ReadPerfMap uses the perf map that the process may have when the trace ends. It returns nil if
// there can be none.
func ReadPerfMap(pid int, line *status.Line) *PerfMap {
	file, err := diagnostics.FindPerfMap(pid)
	if err != nil {
		return nil
	}
	return &PerfMap{file: file, pid: int32(pid), line: line, frames: make(map[uint64]struct{})}
}

// WriteRecord implements trace.Writer.
func (m *PerfMap) WriteRecord(r *trace.Record) error {
	m.last = max(m.last, r.Time)
	switch r.Kind {
	case trace.KindCall:
		m.note(r.Call.Stack.Frames)
	case trace.KindEnd:
		if err := m.name(); err != nil {
			return err
		}
	}
	return m.Writer.WriteRecord(r)
}

// note adds the frames of a stack. Most were in the stack before.
func (m *PerfMap) note(frames []uint64) {
	for _, f := range frames {
		slot := &m.recent[f*0x9e3779b97f4a7c15>>51]
		if *slot == f {
			continue
		}
		*slot = f
		if len(m.frames) < maxCompiled {
			m.frames[f] = struct{}{}
		}
	}
}

// name writes the functions that contain frames.
func (m *PerfMap) name() error {
	m.end()
	f, err := m.file.Open()
	if m.client == nil && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		m.line.Print("process %d: no names of compiled code: %v", m.pid, err)
		return nil
	}
	defer f.Close()
	names, err := symbol.ReadPerfMap(f, m.file.Path)
	if err != nil {
		m.line.Print("process %d: %v", m.pid, err)
	}
	var until uint64 // the end of the function that was written last
	for _, frame := range slices.Sorted(maps.Keys(m.frames)) {
		at := frame - 1 // in the call
		if at < until {
			continue
		}
		name, start, end, ok := names.Code(at)
		if !ok {
			continue
		}
		until = end
		r := trace.Record{Kind: trace.KindFunction, Time: m.last, PID: m.pid, Function: trace.Function{Name: name, Start: start, End: end}}
		if err := m.Writer.WriteRecord(&r); err != nil {
			return err
		}
	}
	return nil
}

// end makes the runtime end its perf map and write the rest of it.
func (m *PerfMap) end() {
	if m.ended || m.client == nil || m.file.Lasting {
		return
	}
	m.ended = true
	ctx, cancel := context.WithTimeout(context.Background(), perfMapEnd)
	defer cancel()
	_ = m.client.DisablePerfMap(ctx) // if the process has ended, its perf map has, too
}

// Discard ends the perf map when nothing is recorded.
func (m *PerfMap) Discard() {
	m.end()
	_ = m.file.Close() // nothing was written
}

// Close implements trace.Writer.
func (m *PerfMap) Close() error {
	m.end()
	return errors.Join(m.Writer.Close(), m.file.Close())
}
