package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"rtrace-bpf/internal/linux/dotnet"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
)

// compiled names the code in stacks that a runtime has compiled: it makes the runtime
// write a perf map, and at the end of the trace writes those functions of it that
// stacks lead through, since the file may be gone when the trace is read.
type compiled struct {
	trace.Writer // where records go; set before the first

	client *dotnet.Client
	file   *dotnet.PerfMap
	pid    int32
	status *status
	recent [1 << 13]uint64     // frames that came lately
	frames map[uint64]struct{} // all, up to maxCompiled
	last   int64               // time of the last record
	ended  bool
}

// maxCompiled bounds how many frames are looked up, of a process that has no end of
// them.
const maxCompiled = 1 << 18

// perfMapEnd is how long the end of a perf map is waited for: a process that is stopped
// does not answer.
const perfMapEnd = 2 * time.Second

// newCompiled makes the runtime of a process write a perf map.
func newCompiled(ctx context.Context, pid int, s *status) (*compiled, error) {
	client, err := dotnet.Find(pid)
	if err != nil {
		return nil, err
	}
	file, err := dotnet.FindPerfMap(pid)
	if err != nil {
		return nil, err
	}
	if err := client.EnablePerfMap(ctx); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &compiled{client: client, file: file, pid: int32(pid), status: s, frames: make(map[uint64]struct{})}, nil
}

// WriteRecord implements trace.Writer.
func (c *compiled) WriteRecord(r *trace.Record) error {
	c.last = max(c.last, r.Time)
	switch r.Kind {
	case trace.KindCall:
		c.note(r.Call.Stack.Frames)
	case trace.KindEnd:
		if err := c.name(); err != nil {
			return err
		}
	}
	return c.Writer.WriteRecord(r)
}

// note remembers the frames of a stack. Most were in the stack before.
func (c *compiled) note(frames []uint64) {
	for _, f := range frames {
		slot := &c.recent[f*0x9e3779b97f4a7c15>>51]
		if *slot == f {
			continue
		}
		*slot = f
		if len(c.frames) < maxCompiled {
			c.frames[f] = struct{}{}
		}
	}
}

// name writes the functions that frames are in.
func (c *compiled) name() error {
	c.end()
	f, err := c.file.Open()
	if err != nil {
		c.status.print("process %d: no names of compiled code: %v", c.pid, err)
		return nil
	}
	defer f.Close()
	names, err := symbol.ReadPerfMap(f, c.file.Path)
	if err != nil {
		c.status.print("process %d: %v", c.pid, err)
	}
	var until uint64 // the end of the function that was written last
	for _, frame := range slices.Sorted(maps.Keys(c.frames)) {
		at := frame - 1 // in the call
		if at < until {
			continue
		}
		name, start, end, ok := names.Code(at)
		if !ok {
			continue
		}
		until = end
		r := trace.Record{Kind: trace.KindFunction, Time: c.last, PID: c.pid, Function: trace.Function{Name: name, Start: start, End: end}}
		if err := c.Writer.WriteRecord(&r); err != nil {
			return err
		}
	}
	return nil
}

// end makes the runtime end its perf map, and write what it has of it.
func (c *compiled) end() {
	if c.ended || c.file.Lasting {
		return
	}
	c.ended = true
	ctx, cancel := context.WithTimeout(context.Background(), perfMapEnd)
	defer cancel()
	_ = c.client.DisablePerfMap(ctx) // that of a process that has ended, ended with it
}

// discard lets the runtime go when nothing is recorded.
func (c *compiled) discard() {
	c.end()
	_ = c.file.Close() // nothing was written
}

// Close implements trace.Writer.
func (c *compiled) Close() error {
	c.end()
	return errors.Join(c.Writer.Close(), c.file.Close())
}
