package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"

	"rtrace-bpf/internal/analysis/estimate"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/digestview"
)

// bothWindowed reports whether two files were recorded in windows. It is an error if one was. Errors
// of files are left to those who read them.
func (i *inputFlags) bothWindowed(ctx context.Context, s cli.Streams, command string, args []string) (bool, error) {
	of := *i
	of.windows = true
	var is [2]bool
	for n, name := range args {
		if name == "-" {
			return false, nil
		}
		in, err := of.openNamed(ctx, s.In, command, name, func(error) {})
		if err != nil {
			return false, nil //nolint:nilerr // it is reported when the file is read
		}
		is[n] = in.windowed()
		_ = in.Close() // only read
	}
	if is[0] != is[1] {
		return false, cli.WithHint(cli.Usagef("one of the traces was recorded with --budget, the other one was not: they cannot be compared"),
			"rtrace info and rtrace top print the figures of each")
	}
	return is[0], nil
}

// compareEstimates writes the page of two traces that were recorded in windows.
func (o *reportOptions) compareEstimates(ctx context.Context, s cli.Streams, w io.Writer, args []string) (incomplete error) {
	var pages [2]*estimatedPage
	for n := range pages {
		p, err := o.readEstimates(ctx, s, args[n])
		if !isIncomplete(err) {
			return err
		}
		pages[n], incomplete = p, errors.Join(incomplete, err)
	}
	c := comparedEstimates(pages)
	c.Before, c.After = base(args[0]), base(args[1])
	b := bufio.NewWriter(w)
	if err := errors.Join(digestview.WriteEstimatesComparison(b, c), b.Flush()); err != nil {
		return err
	}
	return incomplete
}

// readEstimates sums up a trace of windows. Its result is usable also if the trace is incomplete.
func (o *reportOptions) readEstimates(ctx context.Context, s cli.Streams, file string) (p *estimatedPage, err error) {
	in, err := o.in.openNamed(ctx, s.In, "report", file, warner(s.Err, "report"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	resolver, err := o.names.open(ctx, warner(s.Err, "report"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = resolver.Save() }() // without a cache, the next run is only slower
	p = o.estimatedPage(ctx, in, file, resolver)
	return p, in.outcome(p.read(resolver, warner(s.Err, "report")))
}

// compared is what two traces estimate about the same thing: numbers of groups, or none.
type compared [2]int

const noGroup = -1

// rates returns what both traces estimate per second. What one of them does not have was not seen in
// its windows.
func (x compared) rates(pages [2]*estimatedPage) digestview.ComparedRates {
	var of [2]estimate.Allocated
	for n, group := range x {
		if group != noGroup {
			of[n] = pages[n].Of(group)
		}
	}
	for n, group := range x {
		if seen := &of[1-n]; group == noGroup {
			of[n] = pages[n].Unseen(seen.Bytes.Value / max(1, seen.Blocks.Value))
		}
		of[n] = of[n].Per(pages[n].Length())
	}
	return digestview.ComparedRates{Before: of[0], After: of[1]}
}

// comparedFrame identifies a function of two traces: folders of modules and addresses may differ.
func comparedFrame(f sites.Frame) sites.Frame {
	f.Module, f.Position = base(f.Module), base(f.Position)
	if f.Function != "" {
		f.Addr, f.Position = 0, ""
	}
	return f
}

// comparedEstimates matches the call sites and the boxes of two traces.
func comparedEstimates(pages [2]*estimatedPage) *digestview.EstimatesComparison {
	c := &digestview.EstimatesComparison{Boxes: make([]digestview.ComparedBox, 1)}
	groups := []compared{{noGroup, noGroup}}
	type key struct {
		parent int
		frame  sites.Frame
	}
	boxes, bySite := make(map[key]int), make(map[sites.Frame]int)
	var pairs []compared
	for n, p := range pages {
		c.Windows[n] = p.Text()
		numbers := make([]int, len(p.boxes)) // in c.Boxes
		for i := 1; i < len(p.boxes); i++ {
			b := &p.boxes[i]
			k := key{numbers[b.Parent], comparedFrame(b.Frame)}
			at, known := boxes[k]
			if !known {
				at = len(c.Boxes)
				boxes[k] = at
				c.Boxes = append(c.Boxes, digestview.ComparedBox{Parent: k.parent, Frame: b.Frame})
				groups = append(groups, compared{noGroup, noGroup})
			}
			numbers[i], groups[at][n] = at, p.groupOf[i]
		}
		texts := groupTexts{sites.ByFunction, &p.calls.stats}
		for i, group := range p.siteOf {
			of := p.sites.At(i)
			k := comparedFrame(of.Frames[0])
			at, known := bySite[k]
			if !known {
				at = len(pairs)
				bySite[k] = at
				pairs = append(pairs, compared{noGroup, noGroup})
				c.Sites = append(c.Sites, digestview.ComparedSite{Text: texts.texts(of)[0]})
			}
			pairs[at][n] = group
		}
	}
	c.Total = digestview.ComparedRates{Before: pages[0].All().Per(pages[0].Length()), After: pages[1].All().Per(pages[1].Length())}
	c.Boxes[0].ComparedRates = c.Total
	for i := 1; i < len(c.Boxes); i++ {
		c.Boxes[i].ComparedRates = groups[i].rates(pages)
	}
	for i := range c.Sites {
		c.Sites[i].ComparedRates = pairs[i].rates(pages)
	}
	slices.SortStableFunc(c.Sites, func(a, b digestview.ComparedSite) int {
		grown := func(s *digestview.ComparedSite) float64 { return s.After.Bytes.Value - s.Before.Bytes.Value }
		return cmp.Compare(grown(&b), grown(&a))
	})
	return c
}
