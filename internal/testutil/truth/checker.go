package truth

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"rtrace-bpf/trace"
)

// Checker compares a trace with the log of its process, record by record. It needs memory for
// the live blocks, and 64 KiB per thread.
type Checker struct {
	Depth int // most frames in an entry of the log (SHIM_DEPTH)
	Most  int // number of programs that are traced, after which the trace has no calls; 0 means all

	// Counts of what was compared.
	Events   int
	Threads  int
	Split    int // moves that are a free and an allocation in the trace
	Early    int // reallocs that failed after the tracer had stopped waiting
	Stacks   int // stacks that were compared
	Broken   int // of these, stacks that are cut in a library that was just loaded
	Programs int // 1, and 1 for each exec

	logs    []*Log
	mark    *Mark
	at      int // in logs
	threads map[int32]*thread
	live    liveness
	diff    *difference
}

// NewChecker returns a Checker for a process that has ended. mark is its state when the trace
// began; nil if the trace begins with the process.
func NewChecker(dir string, pid int, mark *Mark) (*Checker, error) {
	all, err := Open(dir, pid)
	if err != nil {
		return nil, err
	}
	c := &Checker{logs: all, mark: mark, live: liveness{blocks: map[uint64]block{}}}
	if mark != nil {
		c.at = slices.IndexFunc(all, func(l *Log) bool { return l.path == mark.log.path })
		c.live.blocks = maps.Clone(mark.live)
	} else if n := all[0].Unlogged; n > 0 {
		return nil, fmt.Errorf("process %d made %d calls before it had a log", pid, n)
	}
	return c, c.begin()
}

func (c *Checker) log() *Log { return c.logs[c.at] }

// begin starts with the threads of the next log.
func (c *Checker) begin() error {
	c.Programs++
	c.threads = map[int32]*thread{}
	for tid := range c.log().threads {
		t := &thread{tid: tid, cursor: c.log().cursor(tid)}
		if c.mark != nil {
			for range c.mark.done[tid] {
				if _, err := t.cursor.next(); err != nil {
					return err
				}
			}
		}
		c.threads[tid] = t
	}
	c.mark = nil
	return nil
}

// Record checks the next record of the trace. Its error describes the first difference.
func (c *Checker) Record(rec *trace.Record) error {
	if c.diff != nil {
		return c.diff.more(rec)
	}
	switch rec.Kind {
	case trace.KindLost:
		return fmt.Errorf("%d events are missing from the trace: %s", rec.Lost.Count, rec.Lost.Reason)
	case trace.KindExec:
		return c.exec()
	case trace.KindCall:
		return c.call(rec)
	}
	return nil
}

func (c *Checker) exec() error {
	if err := c.complete(); err != nil {
		return err
	}
	if c.Programs == c.Most {
		c.at, c.threads = len(c.logs)-1, nil
		return nil
	}
	if c.at++; c.at == len(c.logs) {
		return errors.New("the trace has an exec that is not in the log")
	}
	if n := c.log().Unlogged; n > 0 {
		return fmt.Errorf("the program made %d calls after exec before it had a log", n)
	}
	clear(c.live.blocks)
	return c.begin()
}

func (c *Checker) call(rec *trace.Record) error {
	t, got := c.threads[rec.TID], eventOf(&rec.Call)
	if t == nil {
		return fmt.Errorf("call %d of the trace: %s, by thread %d, which has no log", rec.Call.Seq, got, rec.TID)
	}
	c.Events++
	if t.events == 0 {
		c.Threads++
	}
	wrong, err := c.match(t, got, rec)
	if err != nil {
		return err
	}
	if wrong == "" {
		wrong = c.live.apply(got, rec)
	}
	if wrong == "" {
		return nil
	}
	c.diff = newDifference(t, wrong, got, rec)
	return nil
}

// complete returns an error for the first call of the log that is not in the trace.
func (c *Checker) complete() error {
	if c.diff != nil {
		return c.diff.end()
	}
	for _, tid := range slices.Sorted(maps.Keys(c.threads)) {
		t := c.threads[tid]
		if t.half != nil {
			return fmt.Errorf("thread %d: the trace ends in the middle of a realloc, without: %s", tid, t.half)
		}
		for {
			e, err := t.look()
			if err != nil {
				return err
			}
			if e == nil {
				break
			}
			if e.Done {
				return newMissing(t, e)
			}
			t.entry = nil // it was the last entry
		}
	}
	return nil
}

// End returns an error if something is missing at the end of the trace.
func (c *Checker) End() error {
	if err := c.complete(); err != nil {
		return err
	}
	if n := len(c.logs) - 1 - c.at; n > 0 {
		return fmt.Errorf("%d programs that the process executed are not in the trace", n)
	}
	return nil
}

// Check compares a whole trace.
func (c *Checker) Check(r trace.Reader) error {
	var rec trace.Record
	for {
		switch err := r.ReadRecord(&rec); {
		case err == io.EOF:
			return c.End()
		case err != nil:
			return errors.Join(err, c.diff.end())
		}
		if err := c.Record(&rec); err != nil {
			return err
		}
	}
}

// MostLive returns the highest number of blocks that were live at the same time.
func (c *Checker) MostLive() int { return c.live.most }
