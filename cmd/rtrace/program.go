package main

import "rtrace-bpf/internal/cli"

// originalNames are the subcommands that accept the options of the original program of that
// name. They are also linked as sp-rtrace-NAME.
var originalNames = []string{"allocmap", "pagemap", "postproc", "resolve", "timeline"}

// program returns the data for manual pages and shells.
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
