package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"rtrace-bpf/internal/analysis/consumption"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/report/gallery"
	"rtrace-bpf/internal/report/usageview"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// graphs is a folder that is being created.
type graphs struct {
	*graphsOptions
	ctx  context.Context
	in   *twice
	dir  *folder
	warn func(error)

	program   string
	leaked    bool   // the trace has only leaks
	resources uint32 // selected resources, as in postproc -R
	mappings  []*trace.Record
	resolver  *resolve.Resolver
	page      gallery.Page
	ending    error // how each reading ended, if there is a result
}

// read reads the trace, or the part of a function if there is a name. A cut input is
// reported at the end.
func (g *graphs) read(each func(r trace.Reader) error) error {
	err := g.in.read(g.process, func(src *processReader, r trace.Reader) error {
		if g.kind == "function" && g.resolver != nil {
			r = newOnlyReader(resolve.NewReader(r, g.resolver), g.name, g.blocks.framer(g.resolver))
		}
		err := each(r)
		g.program = src.name(g.in.name)
		if g.resolver == nil && isSyntax(err) {
			if err := src.check(g.warn); err != nil {
				return err
			}
		}
		return err
	})
	if err != nil && isIncomplete(err) {
		g.ending = err
		return nil
	}
	return err
}

// make creates all files.
func (g *graphs) make() error {
	if err := g.survey(); err != nil {
		return err
	}
	for _, part := range []func() error{g.timelines, g.leaks, g.callGraph, g.profile, g.index} {
		if err := part(); err != nil {
			return err
		}
	}
	return g.ending
}

// survey reads what kind of trace it is and its mappings, some of which come late.
func (g *graphs) survey() error {
	err := g.read(func(r trace.Reader) error {
		return each(r, func(rec *trace.Record) {
			switch rec.Kind {
			case trace.KindHeader:
				g.leaked = g.leaked || strings.Contains(rec.Header.Filter, "leaks")
			case trace.KindResource:
				if g.blocks.resource == "" || rec.Resource.Type == g.blocks.resource {
					g.resources |= 1 << ((rec.Resource.ID - 1) & 31)
				}
			case trace.KindMapping, trace.KindModule, trace.KindFunction:
				m := rec.Clone()
				m.Call = trace.Call{}
				g.mappings = append(g.mappings, m)
			}
		})
	})
	if err != nil {
		return err
	}
	g.blocks.source.any = true
	if g.resolver, err = g.blocks.resolver(); err != nil {
		return err
	}
	for _, m := range g.mappings {
		g.resolver.Observe(m)
	}
	g.page.Title = "Allocations of " + g.program
	if g.kind == "function" {
		g.page.Title = fmt.Sprintf("Allocations of %s through %s", g.program, g.name)
		g.page.About = append(g.page.About, "Only blocks that were allocated through a function or library whose name begins with "+g.name+".")
	}
	if g.leaked {
		g.page.About = append(g.page.About, "The trace has only leaks: frees and freed blocks are not in it, so there are no pictures over time.")
	}
	return nil
}

// add keeps a file for the page and writes it.
func (g *graphs) add(item gallery.Item) error {
	g.page.Items = append(g.page.Items, item)
	return g.file(item.File, item.Data)
}

func (g *graphs) file(name string, data []byte) error {
	return g.dir.write(name, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// timelines draws the pictures over time.
func (g *graphs) timelines() error {
	reports := consumption.Totals | consumption.Activity | consumption.Lifetime | consumption.Count | consumption.Size
	if g.leaked {
		reports = consumption.Count | consumption.Size
	}
	u, err := g.usage(reports, false)
	if errors.Is(err, consumption.ErrTimes) {
		u, err = g.usage(reports, true)
	}
	switch {
	case errors.Is(err, consumption.ErrEmpty) && g.kind == "function":
		return cli.WithHint(fmt.Errorf("nothing was allocated through a function or library whose name begins with %q", g.name),
			"rtrace leaks -r and rtrace mprof -r -v show names")
	case errors.Is(err, consumption.ErrEmpty):
		return errors.New("nothing to show: the trace has no calls")
	case err != nil:
		return err
	}
	for _, r := range consumption.Reports {
		if !reports.Has(r) {
			continue
		}
		var picture bytes.Buffer
		if err := usageview.WriteSVG(&picture, u, r, usageview.Options{Name: g.program, LogBase: 10}); err != nil {
			return err
		}
		item := gallery.Item{Title: usageview.Title(u, r), File: r.String() + ".svg", Data: picture.Bytes(), Picture: true}
		if err := g.add(item); err != nil {
			return err
		}
	}
	return nil
}

// usage counts the data of the pictures, by time or by calls.
func (g *graphs) usage(reports consumption.Report, calls bool) (*consumption.Usage, error) {
	scan := consumption.NewScan(consumption.Filter{}, false, calls)
	if err := g.read(func(r trace.Reader) error { return each(r, scan.Add) }); err != nil {
		return nil, err
	}
	if err := scan.Check(reports); err != nil {
		return nil, err
	}
	if err := scan.Doubts(); err != nil {
		g.warn(err)
	}
	u, err := consumption.New(scan, consumption.Options{Reports: reports})
	if err != nil {
		return nil, err
	}
	if err := g.read(func(r trace.Reader) error { return each(r, u.Add) }); err != nil {
		return nil, err
	}
	u.Finish()
	return u, nil
}

// profile writes the tables of mprof.
func (g *graphs) profile() error {
	o := &mprofOptions{blockFlags: g.blocks, callGraph: true, depth: 1, bins: 1024, bounds: "32,256,2048"}
	if err := o.check(); err != nil {
		return err
	}
	report := &mprofReport{options: o, limit: g.limit}
	err := g.read(func(r trace.Reader) (err error) {
		report.profile, err = o.profile(r, func(error) {}) // callGraph has already warned
		return err
	})
	if err != nil {
		return err
	}
	report.total = report.profile.Total()
	var text bytes.Buffer
	if err := report.print(&text); err != nil {
		return err
	}
	return g.add(gallery.Item{Title: "Profile", File: "profile.txt", Data: text.Bytes()})
}

// index writes the page that shows all files.
func (g *graphs) index() error { return g.dir.write("index.html", g.page.Write) }
