package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/encoder/nettrace"
)

// nettraceFlags select how nettrace is written.
type nettraceFlags struct {
	version int
	view    string
}

func (n *nettraceFlags) declare(f *pflag.FlagSet) {
	f.IntVar(&n.version, "nettrace-version", nettrace.V4, "write version `N` of the nettrace container: 4, which all readers accept, or 6")
	f.Var(flags.Word(&n.view, "", nettrace.ViewAllocTick), "nettrace-view", "in nettrace, also write what `VIEW` needs: alloctick, for PerfView's views of .NET memory, which then count the bytes of each allocation; makes the trace four times as large")
}

// checkValues returns an error if there is no such version.
func (n *nettraceFlags) checkValues() error {
	if v := n.version; v != nettrace.V4 && v != nettrace.V6 {
		return fmt.Errorf("--nettrace-version %d: write %d or %d", v, nettrace.V4, nettrace.V6)
	}
	return nil
}

func (n *nettraceFlags) encoding() nettrace.Options {
	version := n.version
	if version == 0 {
		version = -1 // 0 would select the default of the encoder
	}
	return nettrace.Options{Version: version, View: n.view, Processors: processors()}
}

// processors returns how many processors the machine may have, 0 if that is unknown.
func processors() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/possible") // as "0-7"
	if err != nil {
		return 0
	}
	all := strings.TrimSpace(string(text))
	last, err := strconv.Atoi(all[strings.LastIndexAny(all, "-,")+1:])
	if err != nil || last < 0 {
		return 0
	}
	return last + 1
}
