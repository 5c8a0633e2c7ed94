package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/tracer"
	"rtrace-bpf/tracer/modules"
)

// originalConfig is what users of sp-rtrace may type: names of flags that are called
// otherwise here, and flags that there are no others for. docs/migrating.md has them all.
type originalConfig struct {
	execute   bool // a command stands behind the flags, as behind --
	start     bool // it is traced at once, which is what -- means
	libunwind bool
	signal    toggleSignal
}

func (o *originalConfig) declare(g *flags.Groups) {
	g.Alias("output", "output-dir")
	g.Alias("depth", "backtrace-depth")
	g.Alias("no-buffer", "disable-packet-buffering")
	g.Command(&o.execute, "execute", "x")
	f := g.Hidden()
	f.BoolVarP(&o.start, "start", "s", false, "")
	f.BoolVarP(&o.libunwind, "libunwind", "u", false, "")
	f.VarP(&o.signal, "toggle-signal", "S", "")
	g.Refuse("monitor-size", "M", flags.Valued, "all sizes have stacks: --min-size leaves out small blocks, and rtrace timeline --filter-size chooses afterwards")
	g.Refuse("disable-timestamps", "T", flags.Switch, "events are ordered by their times, which cost nothing: leave it out")
	g.Refuse("listen", "L", flags.Switch, "there is no pipe from the process to listen to: -p PID traces it")
	g.Refuse("input-file", "i", flags.Valued, "rtrace-bpf reads no traces: rtrace postproc -i FILE does")
	g.Refuse("preload", "", flags.Valued, "nothing is loaded into the process: -e names modules")
	g.Refuse("audit", "a", flags.Valued, "nothing is loaded into the process: -e names modules")
}

// check settles what the flags mean together with ours.
func (o *originalConfig) check(c *config) error {
	switch {
	case o.start && c.startPaused:
		return errors.New("name one of --start and --start-paused")
	case o.libunwind && c.unwind != tracer.UnwindAuto.String() && c.unwind != tracer.UnwindEH.String():
		return fmt.Errorf("--libunwind asks for stacks by unwind tables, and --unwind=%s for others", c.unwind)
	}
	// As in sp-rtrace, where tracing is off until it is asked for.
	c.startPaused = c.startPaused || o.execute && !o.start
	return nil
}

// toggleSignal is the signal that switches tracing.
type toggleSignal struct{ text string }

var _ pflag.Value = (*toggleSignal)(nil)

// Set takes the signal that it is anyway.
func (s *toggleSignal) Set(text string) error {
	switch strings.TrimPrefix(text, "SIG") {
	case "USR1", "10":
		s.text = text
		return nil
	}
	return errors.New("no signal is sent to the process: SIGUSR1 to rtrace-bpf, or --toggle PID, switches tracing")
}

// String returns what was set.
func (s *toggleSignal) String() string { return s.text }

// Type names the kind of value for pflag.
func (s *toggleSignal) Type() string { return "signal" }

// otherModules are modules of sp-rtrace that are not here, and why.
var otherModules = map[string]string{
	"audit": "nothing is loaded into the process",
	"main":  "nothing is loaded into the process",
}

// insteadOf says what to use instead of the first module that is not here.
func insteadOf(names []string) string {
	for _, name := range names {
		_, err := modules.Select([]string{name})
		if instead := otherModules[name]; err != nil && instead != "" {
			return instead
		}
	}
	return "--list tells of all"
}

// moduleName returns the name of a module, also where its file is named, as sp-rtrace
// takes it.
func moduleName(text string) string {
	base := path.Base(text)
	if name, ok := strings.CutPrefix(base, "libsp-rtrace-"); ok {
		if name, _, ok := strings.Cut(name, ".so"); ok {
			return name
		}
	}
	return text
}
