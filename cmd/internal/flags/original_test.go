package flags

import (
	"slices"
	"strings"
	"testing"
)

// originals returns flags like those of a program that accepts another one's flags.
func originals(depth *int, on, execute *bool) *Groups {
	var g Groups
	f := g.Group("all")
	f.IntVarP(depth, "depth", "b", 64, "")
	f.BoolVarP(on, "on", "A", false, "")
	f.BoolP("help", "h", false, "")
	g.Alias("depth", "backtrace-depth", "frames")
	g.Alias("on", "all")
	g.Refuse("monitor-size", "M", Valued, "there are stacks of all sizes")
	g.Refuse("listen", "L", Switch, "nothing is listened to")
	g.Command(execute, "execute", "x")
	return &g
}

func TestOriginalNames(t *testing.T) {
	for _, test := range []struct {
		args          string
		depth         int
		on, execute   bool
		rest, command string
		err           string
	}{
		{args: "--backtrace-depth 5 --all a", depth: 5, on: true, rest: "a"},
		{args: "--frames=7", depth: 7},
		{args: "--frames=x", err: "--frames x: not a whole number; write one such as 10"},
		{args: "-M 16,32", err: "-M, --monitor-size: there are stacks of all sizes"},
		{args: "--monitor-size=16", err: "-M, --monitor-size: there are stacks of all sizes"},
		{args: "-AL", err: "-L, --listen: nothing is listened to"},
		{args: "-x app -b 5 -- -A", depth: 64, execute: true, command: "app -b 5 -- -A"},
		{args: "-b 5 -x app -L", depth: 5, execute: true, command: "app -L"},
		{args: "-Ab5 -xapp -L", depth: 5, on: true, execute: true, command: "app -L"},
		{args: "-Ax app -L", depth: 64, on: true, execute: true, command: "app -L"},
		{args: "-A --execute=app -x", depth: 64, on: true, execute: true, command: "app -x"},
		{args: "--execute app", depth: 64, execute: true, command: "app"},
		{args: "--depth 5 --execute app", depth: 5, execute: true, command: "app"},
		{args: "-b -x app", err: "-b -x: not a whole number; write one such as 10"},
		{args: "--depth -x app", err: "--depth -x: not a whole number; write one such as 10"},
		{args: "-A=false -x app", depth: 64, execute: true, command: "app"},
		{args: "-A -- app -x", depth: 64, on: true, command: "app -x"},
		{args: "-z -x app", err: "unknown flag -z"},
		{args: "--nope -x app", err: "unknown flag --nope"},
		{args: "a -x app", depth: 64, execute: true, rest: "a", command: "app"},
	} {
		var depth int
		var on, execute bool
		rest, command, err := originals(&depth, &on, &execute).ParseCommand("test", strings.Fields(test.args))
		switch {
		case test.err != "":
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: %v, want %s", test.args, err, test.err)
			}
		case err != nil || depth != test.depth || on != test.on || execute != test.execute,
			!slices.Equal(rest, strings.Fields(test.rest)) || !slices.Equal(command, strings.Fields(test.command)):
			t.Errorf("%s: depth %d, on %t, execute %t, %q, %q, %v", test.args, depth, on, execute, rest, command, err)
		}
	}
}

// Without a command after it, the switch names an empty one.
func TestCommandMissing(t *testing.T) {
	var depth int
	var on, execute bool
	_, command, err := originals(&depth, &on, &execute).ParseCommand("test", []string{"-x"})
	if err != nil || command == nil || len(command) > 0 {
		t.Errorf("%q, %v", command, err)
	}
}

func TestKnown(t *testing.T) {
	var depth int
	var on, execute bool
	g := originals(&depth, &on, &execute)
	for name, want := range map[string]string{"depth": "depth", "b": "depth", "frames": "depth", "x": "execute", "M": "monitor-size", "nope": "", "z": ""} {
		if long, refused := g.Known(name); long != want || refused != (want == "monitor-size") {
			t.Errorf("%s: %q, %t", name, long, refused)
		}
	}
	for _, group := range g.Usage() {
		for _, f := range group.Flags {
			if f.Long != "depth" && f.Long != "on" && f.Long != "help" {
				t.Errorf("the help shows %s", f.Long)
			}
		}
	}
}
