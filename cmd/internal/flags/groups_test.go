package flags

import (
	"slices"
	"testing"
)

// Everything after -- is a command, flags included.
func TestParseCommand(t *testing.T) {
	for _, test := range []struct {
		args, rest, command []string
		wrong               bool
	}{
		{args: []string{"-x", "a"}, rest: []string{"a"}},
		{args: []string{"-x", "--"}, command: []string{}},
		{args: []string{"a", "--", "b", "-x", "--nope", "--", "c"}, rest: []string{"a"}, command: []string{"b", "-x", "--nope", "--", "c"}},
		{args: []string{"--nope", "--", "b"}, wrong: true},
		{args: []string{"--value", "--", "b"}, rest: []string{"b"}},
	} {
		var g Groups
		f := g.Group("all")
		f.BoolP("x", "x", false, "")
		f.String("value", "", "")
		rest, command, err := g.ParseCommand("test", test.args)
		if (err != nil) != test.wrong || !slices.Equal(rest, test.rest) || !slices.Equal(command, test.command) || (command == nil) != (test.command == nil) {
			t.Errorf("%q: %q, %q, %v", test.args, rest, command, err)
		}
	}
}
