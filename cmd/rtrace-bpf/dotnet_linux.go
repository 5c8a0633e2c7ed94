package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/dotnet"
	"rtrace-bpf/internal/recording/output"
)

// dotnetFlags select the events of the .NET runtime that are recorded.
type dotnetFlags struct {
	on        bool
	native    bool
	perfMap   bool
	noRundown bool
	providers []string
}

func (d *dotnetFlags) declare(f *pflag.FlagSet) {
	f.BoolVar(&d.on, "dotnet", false, "record the events of a process's .NET runtime, instead of tracing its allocator")
	f.BoolVar(&d.native, "native", false, "with --dotnet, trace the allocator as well: one trace of both, ordered by time, in nettrace or jsonl, which is written when the recording has ended")
	f.StringArrayVar(&d.providers, "dotnet-events", nil, "with --dotnet, record the events of `PROVIDER[:KEYWORDS[:LEVEL]]`, with hexadecimal keywords and a level from 1 to 5; may be repeated (default: the runtime's events about allocations and collections)")
	f.BoolVar(&d.noRundown, "dotnet-no-rundown", false, "with --dotnet, leave out the names of methods, which the runtime sends at the end and which take megabytes")
	f.BoolVar(&d.perfMap, "dotnet-perf-map", false, "trace the allocator of a .NET process, and name the compiled code in its stacks: the runtime writes a perf map until the end, and the names go into the trace or its side file")
}

// alone reports whether the events of the runtime are all that is recorded.
func (d *dotnetFlags) alone() bool { return d.on && !d.native }

func (d *dotnetFlags) check(c *config) error {
	if _, err := d.session(); err != nil {
		return err
	}
	switch {
	case !d.on && (len(d.providers) > 0 || d.noRundown):
		return errors.New("--dotnet-events and --dotnet-no-rundown go with --dotnet")
	case d.alone() && d.perfMap:
		return errors.New("--dotnet-perf-map is for native stacks, which --dotnet has with --native only")
	case d.alone() && c.limits.dryRun:
		return errors.New("plan and --dry-run are about probes, and --dotnet has none without --native")
	case d.on && c.limits.maxSize > 0:
		return errors.New("--max-size does not go with --dotnet")
	case d.native && !d.on:
		return errors.New("--native goes with --dotnet: without both, native calls alone are traced")
	case d.native && !output.WholeFormat(c.format.name):
		return cli.Usagef("%s cannot hold events of a runtime next to native calls: write nettrace or jsonl", c.format.name)
	}
	return nil
}

// The default selects the events of collections and of allocations, one for about every
// 100 KB, and the samples of .NET 10.
const (
	runtimeProvider  = "Microsoft-Windows-DotNETRuntime"
	usualKeywords    = 0x1 | 0x80000000000
	usualLevel       = 5 // allocations are verbose
	mostKeywords     = 1<<64 - 1
	leastLevel       = 1
	verboseLevel     = 5
	informationLevel = 4
)

// session returns the configuration of the session with the runtime: the selected events.
func (d *dotnetFlags) session() (dotnet.Config, error) {
	c := dotnet.Config{Stacks: true, Rundown: !d.noRundown}
	for _, text := range d.providers {
		p, err := parseProvider(text)
		if err != nil {
			return c, err
		}
		c.Providers = append(c.Providers, p)
	}
	if len(c.Providers) == 0 {
		c.Providers = []dotnet.Provider{{Name: runtimeProvider, Keywords: usualKeywords, Level: usualLevel}}
	}
	return c, nil
}

// parseProvider parses PROVIDER[:KEYWORDS[:LEVEL]].
func parseProvider(text string) (dotnet.Provider, error) {
	name, rest, _ := strings.Cut(text, ":")
	keywords, level, _ := strings.Cut(rest, ":")
	p := dotnet.Provider{Name: name, Keywords: mostKeywords, Level: informationLevel}
	if name == "" {
		return p, fmt.Errorf("--dotnet-events %q names no provider", text)
	}
	var err error
	if keywords != "" {
		p.Keywords, err = strconv.ParseUint(strings.TrimPrefix(strings.ToLower(keywords), "0x"), 16, 64)
		if err != nil {
			return p, fmt.Errorf("--dotnet-events %q: keywords are a hexadecimal number, not %q", text, keywords)
		}
	}
	if level != "" {
		n, err := strconv.ParseUint(level, 10, 32)
		if err != nil || n < leastLevel || n > verboseLevel {
			return p, fmt.Errorf("--dotnet-events %q: the level is 1 to 5, not %q", text, level)
		}
		p.Level = uint32(n)
	}
	return p, nil
}
