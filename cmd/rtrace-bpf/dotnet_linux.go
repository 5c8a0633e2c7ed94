package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/linux/dotnet"
)

// dotnetConfig is what is asked of the runtime of .NET.
type dotnetConfig struct {
	on        bool
	native    bool
	perfMap   bool
	noRundown bool
	providers []string
}

func (d *dotnetConfig) declare(f *pflag.FlagSet) {
	f.BoolVar(&d.on, "dotnet", false, "ask the runtime of a process of .NET for its events, instead of tracing its allocator")
	f.BoolVar(&d.native, "native", false, "with --dotnet, trace its allocator as well: one trace of both, by time, in nettrace or jsonl, written when the recording has ended")
	f.StringArrayVar(&d.providers, "dotnet-events", nil, "with --dotnet, stream the events of `PROVIDER[:KEYWORDS[:LEVEL]]`, keywords in hexadecimal, level 1 to 5; may be repeated (default: those of the runtime about allocations and collections)")
	f.BoolVar(&d.noRundown, "dotnet-no-rundown", false, "with --dotnet, leave out the names of methods, which come at the end and are megabytes")
	f.BoolVar(&d.perfMap, "dotnet-perf-map", false, "trace the allocator of a process of .NET, and name the code in its stacks that the runtime has compiled: it is asked for a perf map until the end, and the names go into the trace or its side file")
}

func (d *dotnetConfig) check(c *config) error {
	if _, err := d.session(); err != nil {
		return err
	}
	switch {
	case !d.on && (len(d.providers) > 0 || d.noRundown):
		return errors.New("--dotnet-events and --dotnet-no-rundown go with --dotnet")
	case d.on && d.perfMap && !d.native:
		return errors.New("--dotnet-perf-map is for native stacks, which --dotnet has with --native only")
	case d.on && c.dryRun && !d.native:
		return errors.New("--dry-run is about probes, and --dotnet puts none without --native")
	case d.on && c.maxSize > 0:
		return errors.New("--max-size does not go with --dotnet")
	}
	return d.checkBeside(c)
}

// What is streamed by default: collections and allocations, one in about 100 KB,
// and those that .NET 10 samples.
const (
	runtimeProvider  = "Microsoft-Windows-DotNETRuntime"
	usualKeywords    = 0x1 | 0x80000000000
	usualLevel       = 5 // allocations are verbose
	mostKeywords     = 1<<64 - 1
	leastLevel       = 1
	verboseLevel     = 5
	informationLevel = 4
)

// session returns what is asked for.
func (d *dotnetConfig) session() (dotnet.Config, error) {
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

// parseProvider takes PROVIDER[:KEYWORDS[:LEVEL]] apart.
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
