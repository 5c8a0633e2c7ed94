package main

import "rtrace-bpf/internal/cli"

// originalNames are the subcommands that take the options of the original
// program of that name, so that they are linked as sp-rtrace-NAME, too.
var originalNames = []string{"allocmap", "pagemap", "postproc", "resolve", "timeline"}

// program is what manual pages and shells have to know.
func program() *cli.Program {
	p := &cli.Program{Page: overview(), Links: make(map[string]string)}
	for _, c := range commands() {
		p.Subcommands = append(p.Subcommands, c.helpPage())
		p.Links["rtrace-"+c.name] = c.name
	}
	for _, name := range originalNames {
		p.Links["sp-rtrace-"+name] = name
	}
	for name, other := range otherNames {
		p.Links[name] = other.subcommand
	}
	return p
}
