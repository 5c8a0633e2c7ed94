package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"rtrace-bpf/internal/analysis/calltree"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/filter"
	"rtrace-bpf/internal/report/callgraph"
	"rtrace-bpf/internal/report/gallery"
	"rtrace-bpf/trace"
)

// leaks writes the blocks that were not freed, as printed by the post-processor.
func (g *graphs) leaks() error {
	o := &postprocOptions{format: "text", leaks: true, compress: true, sort: "size", resolve: true, depth: -1}
	if err := o.check(); err != nil {
		return err
	}
	p := newPostprocess(g.ctx, cli.Streams{Err: io.Discard}, o, g.in.path)
	p.chosen.Resources = g.resources
	var content postprocContent
	err := g.read(func(r trace.Reader) (err error) {
		p.env.begin(false, false)
		src := filter.NewSelect(&inOrder{src: r}, p.chosen)
		if content, err = p.gather(p.environment(src, true)); err == nil && content.err != io.EOF {
			err = content.err
		}
		return err
	})
	if err != nil {
		return err
	}
	var text bytes.Buffer
	out := &postprocOutput{}
	if err := out.encode(p, &text); err != nil {
		return err
	}
	if err := errors.Join(p.writeTo(out, &content), out.text.Close()); err != nil {
		return err
	}
	return g.add(gallery.Item{Title: "Leaks", File: "leaks.txt", Data: text.Bytes()})
}

// callGraph writes the call graph of the blocks that were not freed, like rtrace calltree
// with the flags of the original's scripts.
func (g *graphs) callGraph() error {
	o := &calltreeOptions{
		typ: callgraph.Bytes.String(), direction: "tb", ends: true, middles: true, blocks: g.blocks,
		graph: callgraph.Options{Limit: g.limit, EmphLimit: 10, OwnLimit: 1.2, Depth: 3},
	}
	o.blocks.liveOnly = true
	for i := range ignoreShortcuts {
		switch ignoreShortcuts[i].flag {
		case "ignore-libc-allocs":
			o.shortcuts[i] = true
		case "ignore-glib-internals", "ignore-qt-internals":
			o.shortcuts[i] = g.kind == "overview"
		}
	}
	if g.kind == "function" {
		o.showBelow, o.graph.EmphLimit = true, 4
	}
	if err := o.check(); err != nil {
		return err
	}
	var (
		builder *calltree.Builder
		about   *origins
	)
	err := g.read(func(r trace.Reader) (err error) {
		about = &origins{src: r}
		builder, err = o.read(about, g.warn)
		return err
	})
	if err != nil {
		return err
	}
	o.graph.About = about.label(true, true)
	var dot bytes.Buffer
	if err := callgraph.Write(&dot, builder.Tree(), &o.graph); err != nil {
		return err
	}
	return g.draw("callgraph", "Call graph of blocks that were not freed", dot.Bytes())
}

// draw writes a graph in the language of dot, and has dot draw it if dot is installed. If
// dot cannot draw the graph, that is not a failure.
func (g *graphs) draw(name, title string, graph []byte) error {
	if err := g.file(name+".dot", graph); err != nil {
		return err
	}
	g.page.Files = append(g.page.Files, name+".dot")
	drawn, err := picture(g.ctx, graph)
	switch {
	case g.ctx.Err() != nil:
		return g.ctx.Err()
	case err != nil:
		g.warn(fmt.Errorf("no %s.svg: %w", name, err))
		g.page.About = append(g.page.About, fmt.Sprintf("There is no picture of the call graph: %v.", err))
		return nil
	}
	return g.add(gallery.Item{Title: title, File: name + ".svg", Data: drawn, Picture: true})
}

// errNoDot is the error of pictures of graphs without Graphviz.
var errNoDot = errors.New("dot of Graphviz is not installed")

// picture returns dot's picture of a graph, as SVG.
func picture(ctx context.Context, graph []byte) ([]byte, error) {
	program, err := exec.LookPath("dot")
	if err != nil {
		return nil, errNoDot
	}
	var out, messages bytes.Buffer
	cmd := exec.CommandContext(ctx, program, "-Tsvg")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(graph), &out, &messages
	if err := cmd.Run(); err != nil {
		line, _, _ := bytes.Cut(bytes.TrimSpace(messages.Bytes()), []byte("\n"))
		return nil, fmt.Errorf("dot: %w: %s", err, line)
	}
	return out.Bytes(), nil
}
