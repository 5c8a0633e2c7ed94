package main

import (
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/encoder/nettrace"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/trace"
)

// nettraceConfig is how nettrace is written.
type nettraceConfig struct {
	version int
	view    string
}

func (n *nettraceConfig) declare(f *pflag.FlagSet) {
	f.IntVar(&n.version, "nettrace-version", nettrace.V4, "write nettrace in the version `N` of its container: 4, which all readers take, or 6")
	f.Var(flags.Word(&n.view, "", nettrace.ViewAllocTick), "nettrace-view", "in nettrace, write besides what `VIEW` needs: alloctick, the views of PerfView of the memory of .NET, which count the bytes of each allocation then; takes four times the room")
}

func (n *nettraceConfig) encoding() nettrace.Options {
	version := n.version
	if version == 0 {
		version = -1 // the encoder's default has a name here
	}
	return nettrace.Options{Version: version, View: n.view, Processors: processors()}
}

// processors returns how many processors the machine may have, 0 if it does not
// say.
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

// functions names the functions of a trace in nettrace for its other readers, as
// long as there is time and room for them.
type functions struct {
	*resolve.Resolver
	hurry   <-chan struct{} // closed when names are not to be waited for
	room    int             // bytes that names may take; negative for any number
	missing int             // names that there was no time or room for
}

var _ nettrace.Symbols = (*functions)(nil)

// nameCost is what a name takes in a trace besides its text, about.
const nameCost = 40

// newFunctions returns the functions of the process of a session.
func (x *session) newFunctions() *functions {
	f := &functions{
		Resolver: resolve.New(resolve.Options{Open: x.system.open, MaxSymbols: maxSymbols, NoLines: true}),
		hurry:    x.hurry, room: -1,
	}
	if x.config.maxSize > 0 {
		f.room = int(sizeReserve / 2)
	}
	return f
}

// Function implements nettrace.Symbols.
func (f *functions) Function(pid int32, addr uint64) string {
	select {
	case <-f.hurry:
		f.missing++
		return ""
	default:
	}
	if f.room == 0 {
		f.missing++
		return ""
	}
	name := f.Resolver.Function(pid, addr)
	if f.room > 0 && name != "" {
		f.room = max(f.room-nameCost-len(name), 0)
	}
	return name
}

// completing writes what names are for when the recording has ended: it takes
// time and memory, as reading the symbols of all files does.
type completing struct {
	trace.Writer
	turn sync.Locker
}

// Close implements trace.Writer.
func (c *completing) Close() error {
	c.turn.Lock()
	defer c.turn.Unlock()
	return c.Writer.Close()
}
