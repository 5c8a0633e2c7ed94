package main

import (
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// The page for users of the original programs is right about the subcommands and their
// flags, and flags that it calls taken exist.
func TestMigrating(t *testing.T) {
	const document = "../../docs/migrating.md"
	of := map[string]string{ // headings and the commands that take the options
		"sp-rtrace-postproc": "postproc", "sp-rtrace-resolve": "resolve", "sp-rtrace-timeline": "timeline", "sp-rtrace-pagemap": "pagemap",
		"sp-rtrace-allocmap": "allocmap", "rtrace-calltree": "calltree", "mptrace": "mptrace", "mleak": "leaks", "mprof": "mprof",
	}
	declared := make(map[string]*flags)
	for _, c := range commands() {
		f := new(flags)
		c.setup(f)
		f.finish()
		declared[c.name] = f
	}
	checked := 0
	for _, row := range testutil.Originals(t, document) {
		for _, name := range testutil.Commands(row.Ours) {
			if declared[name] == nil {
				t.Errorf("%v: there is no rtrace %s", row.Names, name)
				continue
			}
			for _, flag := range testutil.OwnFlags(row.Ours, "rtrace "+name) {
				if long, _ := declared[name].Known(flag); long == "" {
					t.Errorf("%v: rtrace %s has no flag %s", row.Names, name, flag)
				}
				checked++
			}
		}
		command, ok := of[row.Heading]
		if !ok {
			continue
		}
		for _, original := range row.Names {
			long, refused := declared[command].Known(strings.TrimLeft(original, "-"))
			if there := long != "" && !refused; there != (row.Typed == "taken") {
				t.Errorf("rtrace %s %s: flag %q; the document says %s", command, original, long, row.Typed)
			}
			checked++
		}
	}
	if checked < 100 {
		t.Errorf("only %d flags were looked at", checked)
	}
}

// Programs that the page calls taken have links with their names.
func TestMigratingLinks(t *testing.T) {
	links := program().Links
	for _, row := range testutil.Originals(t, "../../docs/migrating.md") {
		if row.Heading != "Programs and scripts" || row.Typed != "taken" {
			continue
		}
		linked := false
		for _, original := range row.Names {
			linked = linked || links[original] != ""
		}
		if !linked {
			t.Errorf("nothing is linked as %v", row.Names)
		}
	}
}
