package main

import (
	"cmp"
	"slices"
	"strings"

	"rtrace-bpf/internal/analysis/aggregate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/report/digestview"
	"rtrace-bpf/internal/report/verdict"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/internal/wrapper"
	"rtrace-bpf/trace"
)

// Numbers of call sites in a page.
const (
	pageSuspects = 20
	pageSteady   = 30
)

// siteNamer names the call sites of an engine when the trace has been read.
type siteNamer struct {
	engine   *aggregate.Engine
	framer   sites.Framer
	resolver *resolve.Resolver
	callers  *resolve.Callers
}

func newSiteNamer(e *aggregate.Engine, f sites.Framer, r *resolve.Resolver) *siteNamer {
	return &siteNamer{engine: e, framer: f, resolver: r, callers: resolve.NewCallers(nil, r, cmp.Or(f.Wrappers, new(wrapper.List)))}
}

// site returns a call site without its verdict.
func (n *siteNamer) site(number int) digestview.Site {
	var r trace.Record
	n.engine.Place(number, &r)
	s := digestview.Site{Frames: n.framer.Append(nil, r.PID, &r.Call.Stack, &r.Call.Caller, 0)}
	for i := range s.Frames {
		if f := &s.Frames[i]; f.Module == "" && f.Addr != 0 {
			f.Module = n.resolver.Process(r.PID).Module(f.Addr)
		}
	}
	at := s.Frames[0]
	// The same frame as in rtrace-bpf top, which does not show those of libraries'
	// allocation functions.
	if caller, frame := n.callers.Find(r.PID, &r.Call.Stack); frame >= 0 && caller.Function != "" {
		at.Place = n.framer.Caller(&caller)
	}
	s.Name = at.Label()
	s.Where = sites.Place{File: base(at.File), Line: at.Line, Module: base(at.Module)}.String()
	return s
}

// functions returns the function of each frame of a call site, the innermost first, or its
// address if the function is unknown. Functions that are inlined there do not count.
func (n *siteNamer) functions(number int) (all []string) {
	var r trace.Record
	n.engine.Place(number, &r)
	framer := n.framer
	framer.Inlined = true
	var made []sites.Frame
	for i := range r.Call.Stack.Frames {
		made = framer.Step(made[:0], r.PID, &r.Call.Stack, i)
		all = append(all, made[len(made)-1].Label())
	}
	return all
}

// below returns the function that all call sites of a suspect are in or below.
func (n *siteNamer) below(s *aggregate.Suspect) string {
	var stacks [][]string
	for _, number := range s.Sites() {
		stacks = append(stacks, n.functions(number))
	}
	return sites.Printable(verdict.Below(stacks, s.Common))
}

// base returns the last part of a path.
func base(file string) string { return file[strings.LastIndexByte(file, '/')+1:] }

// suspect returns a suspect, with the call sites that leak together.
func (n *siteNamer) suspect(x *aggregate.Suspect) digestview.Site {
	if len(x.Parts) == 0 {
		s := n.site(x.Site)
		s.Trend = x.Trend
		return s
	}
	parts := len(x.Parts)
	s := digestview.Site{Name: verdict.Together(parts, n.below(x)), Where: verdict.Each(parts, &x.Trend), Trend: x.Trend}
	for i := range x.Parts {
		s.Parts = append(s.Parts, n.suspect(&x.Parts[i]))
	}
	return s
}

// verdicts returns the verdicts on all call sites that have some.
func (n *siteNamer) verdicts() *digestview.Verdicts {
	state := n.engine.State()
	v := &digestview.Verdicts{Observed: verdict.ObservationOf(state, "")}
	suspect := make(map[int]bool)
	for i := range state.Resources {
		of := &state.Resources[i]
		if !of.Judged() {
			continue
		}
		for _, x := range n.engine.Suspects(of.Type) {
			for _, number := range x.Sites() {
				suspect[number] = true
			}
			if len(v.Suspects) == pageSuspects {
				v.More++
				continue
			}
			s := n.suspect(&x)
			s.Type = typeName(of)
			v.Suspects = append(v.Suspects, s)
		}
	}
	var steady []*aggregate.Site
	for i := range state.Sites {
		if s := &state.Sites[i]; s.Live.Blocks > 0 && !suspect[s.Number] && state.Resources[s.Resource].Judged() {
			steady = append(steady, s)
		}
	}
	slices.SortStableFunc(steady, func(a, b *aggregate.Site) int {
		return cmp.Or(cmp.Compare(b.Live.Bytes, a.Live.Bytes), cmp.Compare(b.Live.Blocks, a.Live.Blocks))
	})
	for _, x := range steady[:min(pageSteady, len(steady))] {
		s := n.site(x.Number)
		s.Trend, s.Type = n.engine.Trend(x.Number), typeName(&state.Resources[x.Resource])
		v.Steady = append(v.Steady, s)
	}
	v.More += len(steady) - len(v.Steady)
	return v
}

// typeName returns the type of a resource, or an empty string for memory.
func typeName(of *aggregate.Resource) string {
	if of.Type == aggregate.Memory {
		return ""
	}
	return of.Type
}
