package main

import (
	"fmt"
	"os"

	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/analysis/stacks"
	"rtrace-bpf/internal/analysis/suppress"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// suppressions counts the blocks that the files of --suppressions leave out.
type suppressions struct {
	list   suppress.List
	locate *locator
	memo   sites.Memo
	all    amount
	of     []amount // by rule
}

// readSuppressions reads the files of --suppressions. It returns nil if there are none.
func (o *leaksOptions) readSuppressions() (*suppressions, error) {
	if len(o.suppressed) == 0 {
		return nil, nil
	}
	s := new(suppressions)
	for _, name := range o.suppressed {
		f, err := os.Open(name)
		if err != nil {
			return nil, cli.FileError("--suppressions", name, err)
		}
		err = s.list.Read(f)
		_ = f.Close() // only read
		if err != nil {
			return nil, cli.Usagef("--suppressions %s: %w", name, err)
		}
	}
	s.of = make([]amount, len(s.list.Rules))
	return s, nil
}

// again returns suppressions by the same rules for another trace.
func (s *suppressions) again() *suppressions {
	if s == nil {
		return nil
	}
	return &suppressions{list: s.list, of: make([]amount, len(s.of))}
}

// add adds what was left out of a trace.
func (s *suppressions) add(of *suppressions) {
	if s == nil {
		return
	}
	s.all.add(of.all)
	for i, a := range of.of {
		s.of[i].add(a)
	}
}

// resolve names frames as r does.
func (s *suppressions) resolve(n *nameFlags, r *resolve.Resolver) {
	if s == nil {
		return
	}
	whole := *n
	whole.wrappers = true // a rule may contain them
	s.locate = newLocator(&whole, r)
	s.locate.all = true
}

// observe takes a record about mappings.
func (s *suppressions) observe(r *trace.Record) {
	if s != nil {
		s.memo.Observe(r)
	}
}

// leaveOut reports whether a rule suppresses the block of a call, and counts it.
func (s *suppressions) leaveOut(r *trace.Record) bool {
	if s == nil {
		return false
	}
	n := s.memo.Number(r, s.find)
	if n == 0 {
		return false
	}
	block := amount{1, r.Call.Size}
	s.all.add(block)
	s.of[n-1].add(block)
	return true
}

// find returns 1 plus the number of the rule for a call, or 0. Operator new is both the function of
// a call and the innermost frame if malloc served it: then the frame counts.
func (s *suppressions) find(r *trace.Record) int {
	frames := []suppress.Frame{{Source: r.Call.Function, Linker: r.Call.Function}}
	for _, at := range s.locate.locate(nil, r) {
		frames = appendFrames(frames, &at)
	}
	n := s.list.Match(frames)
	if n < 0 && len(frames) > 1 && r.Call.Function == "malloc" {
		n = s.list.Match(frames[1:])
	}
	return n + 1
}

// appendFrames appends the functions at a location, or the file alone.
func appendFrames(frames []suppress.Frame, at *stacks.Location) []suppress.Frame {
	if len(at.Lines) == 0 {
		return append(frames, suppress.Frame{Module: at.Mapping.Path})
	}
	for _, l := range at.Lines {
		f := suppress.Frame{Source: l.Function, Linker: l.System, File: l.File, Module: at.Mapping.Path}
		if f.Linker == "" {
			f.Linker = f.Source
		}
		frames = append(frames, f)
	}
	return frames
}

// text returns a line about what is left out, or an empty string.
func (s *suppressions) text() string {
	if s == nil || s.all.Blocks == 0 {
		return ""
	}
	used := uint64(0)
	for _, a := range s.of {
		if a.Blocks > 0 {
			used++
		}
	}
	return fmt.Sprintf("suppressed: %s (%s) by %s", plural(s.all.Blocks, "block"), plural(s.all.Bytes, "byte"), plural(used, "rule"))
}

// suppressedObject is what suppressions leave out, in JSON.
type suppressedObject struct {
	amount
	Rules []suppressedRule `json:"rules"` // those that left something out
}

type suppressedRule struct {
	Name string `json:"name"`
	amount
}

func (s *suppressions) object() *suppressedObject {
	if s == nil {
		return nil
	}
	x := &suppressedObject{amount: s.all, Rules: []suppressedRule{}}
	for i, a := range s.of {
		if a.Blocks > 0 {
			x.Rules = append(x.Rules, suppressedRule{s.list.Rules[i].Name, a})
		}
	}
	return x
}
