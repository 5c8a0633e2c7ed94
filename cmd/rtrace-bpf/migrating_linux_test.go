package main

import (
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/modules"
)

// TestMigrating checks what docs/migrating.md has about the names of the original programs
// against the flags, variables and modules of this program.
func TestMigrating(t *testing.T) {
	var c config
	c.declare()
	for _, row := range testutil.Originals(t, "../../docs/migrating.md") {
		for _, name := range testutil.OwnFlags(row.Ours, name) {
			if long, refused := c.flags.Known(name); long == "" || refused {
				t.Errorf("%v: %s has no flag %s", row.Names, "rtrace-bpf", name)
			}
		}
		for _, original := range row.Names {
			got := ""
			switch row.Heading {
			case "sp-rtrace":
				got = kindOfFlag(&c, strings.TrimLeft(original, "-"))
			case "Variables":
				got = kindOfVariable(original)
			case "Modules":
				got = kindOfModule(original)
			}
			if got != "" && got != row.Typed && !strings.HasPrefix(row.Typed, "see ") {
				t.Errorf("%s is %s, and the document has %s", original, got, row.Typed)
			}
		}
	}
}

func kindOfFlag(c *config, name string) string {
	switch long, refused := c.flags.Known(name); {
	case long == "":
		return "not there"
	case refused:
		return "refused"
	}
	return "taken"
}

func kindOfModule(name string) string {
	switch {
	case name == memoryModule, name == pagemapModule, slices.ContainsFunc(modules.All(), func(m *modules.Module) bool { return m.Name == name }):
		return "taken"
	case otherModules[name] != "":
		return "refused"
	}
	return "not there"
}

func kindOfVariable(name string) string {
	if slices.ContainsFunc(variables, func(v variable) bool { return v.name == name }) {
		return "taken"
	}
	for _, u := range ignoredVariables {
		if u.name == name {
			return "warned"
		}
	}
	return "ignored"
}
