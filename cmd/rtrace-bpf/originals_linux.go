package main

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/tracer/modules"
	"rtrace-bpf/tracer/plan"
)

// originalFlags are flags of sp-rtrace: other names of flags, and flags that exist for its
// users only. docs/migrating.md lists them all.
type originalFlags struct {
	execute   bool // a command follows the flags, as after --
	start     bool // tracing is on from the start, as for a command after --
	libunwind bool
	signal    toggleSignal
}

func (o *originalFlags) declare(g *flags.Groups) {
	g.Alias("output", "output-dir")
	g.Alias("depth", "backtrace-depth")
	g.Alias("no-buffer", "disable-packet-buffering")
	g.Command(&o.execute, "execute", "x")
	f := g.Hidden()
	f.BoolVarP(&o.start, "start", "s", false, "")
	f.BoolVarP(&o.libunwind, "libunwind", "u", false, "")
	f.VarP(&o.signal, "toggle-signal", "S", "")
	g.Refuse("monitor-size", "M", flags.Valued, "blocks of all sizes have stacks: --min-size leaves out small blocks, and rtrace timeline --filter-size selects sizes afterwards")
	g.Refuse("disable-timestamps", "T", flags.Switch, "events are ordered by their times, which cost nothing: leave it out")
	g.Refuse("listen", "L", flags.Switch, "there is no pipe from the process to listen to: -p PID traces it")
	g.Refuse("input-file", "i", flags.Valued, "rtrace-bpf reads no traces: rtrace postproc -i FILE does")
	g.Refuse("preload", "", flags.Valued, "nothing is loaded into the process: -e names modules")
	g.Refuse("audit", "a", flags.Valued, "nothing is loaded into the process: -e names modules")
}

// check resolves what the flags mean together with ours.
func (o *originalFlags) check(c *config) error {
	switch {
	case o.start && c.limits.startPaused:
		return errors.New("name one of --start and --start-paused")
	case o.libunwind && c.stacks.unwind != plan.UnwindAuto.String() && c.stacks.unwind != plan.UnwindEH.String():
		return fmt.Errorf("--libunwind asks for stacks from unwind tables, and --unwind=%s for others", c.stacks.unwind)
	}
	// In sp-rtrace, tracing is off until it is switched on.
	c.limits.startPaused = c.limits.startPaused || o.execute && !o.start
	return nil
}

// toggleSignal is the signal that switches tracing.
type toggleSignal struct{ text string }

var _ pflag.Value = (*toggleSignal)(nil)

// Set accepts SIGUSR1, the only signal that switches tracing.
func (s *toggleSignal) Set(text string) error {
	switch strings.TrimPrefix(text, "SIG") {
	case "USR1", "10":
		s.text = text
		return nil
	}
	return errors.New("no signal is sent to the process: SIGUSR1 to rtrace-bpf, or rtrace-bpf toggle PID, switches tracing")
}

// String returns what was set.
func (s *toggleSignal) String() string { return s.text }

// Type names the kind of value for pflag.
func (s *toggleSignal) Type() string { return "signal" }

// otherModules are modules of sp-rtrace that do not exist here, and why.
var otherModules = map[string]string{
	"audit": "nothing is loaded into the process",
	"main":  "nothing is loaded into the process",
}

// insteadOf returns what to do about the first module that does not exist here.
func insteadOf(names []string) string {
	for _, name := range names {
		_, err := modules.Select([]string{name})
		if instead := otherModules[name]; err != nil && instead != "" {
			return instead
		}
	}
	return "rtrace-bpf modules lists all modules"
}

// moduleName returns the name of a module. text is the name, or the file of a module of
// sp-rtrace.
func moduleName(text string) string {
	base := path.Base(text)
	if name, ok := strings.CutPrefix(base, "libsp-rtrace-"); ok {
		if name, _, ok := strings.Cut(name, ".so"); ok {
			return name
		}
	}
	return text
}
