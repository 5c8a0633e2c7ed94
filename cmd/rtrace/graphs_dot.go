package main

import (
	"bytes"
	"errors"
	"fmt"
	"os/exec"

	"rtrace-bpf/internal/report/gallery"
)

// callGraph writes a graph in the language of dot, and has dot draw it where that
// is installed. A graph that dot cannot draw is no failure.
func (g *graphs) callGraph(name, title string, graph []byte) error {
	if err := g.file(name+".dot", graph); err != nil {
		return err
	}
	g.page.Files = append(g.page.Files, name+".dot")
	picture, err := g.drawn(graph)
	switch {
	case g.ctx.Err() != nil:
		return g.ctx.Err()
	case err != nil:
		g.warn(fmt.Errorf("no %s.svg: %w", name, err))
		g.page.About = append(g.page.About, fmt.Sprintf("There is no picture of the call graph: %v.", err))
		return nil
	}
	return g.add(gallery.Item{Title: title, File: name + ".svg", Data: picture, Picture: true})
}

// drawn returns the picture that dot makes of a graph.
func (g *graphs) drawn(graph []byte) ([]byte, error) {
	program, err := exec.LookPath("dot")
	if err != nil {
		return nil, errors.New("dot of Graphviz is not installed")
	}
	var out, said bytes.Buffer
	cmd := exec.CommandContext(g.ctx, program, "-Tsvg")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(graph), &out, &said
	if err := cmd.Run(); err != nil {
		line, _, _ := bytes.Cut(bytes.TrimSpace(said.Bytes()), []byte("\n"))
		return nil, fmt.Errorf("dot: %w: %s", err, line)
	}
	return out.Bytes(), nil
}
