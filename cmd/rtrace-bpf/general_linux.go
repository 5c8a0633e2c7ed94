package main

import "github.com/spf13/pflag"

// generalFlags select what is printed.
type generalFlags struct {
	quiet    bool
	verbose  int
	version  bool
	log      logFlag
	warnings []string // about the environment
}

func (g *generalFlags) declare(f *pflag.FlagSet) {
	f.BoolVarP(&g.quiet, "quiet", "q", false, "print errors only: no progress and no summary")
	f.CountVarP(&g.verbose, "verbose", "v", "print what is done; twice: also where each probe is, and why")
	g.log.declare(f)
	f.BoolVar(&g.version, "version", false, "print the version and exit")
}
