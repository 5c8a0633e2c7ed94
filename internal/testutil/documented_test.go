package testutil

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/cli"
)

func TestCommandLines(t *testing.T) {
	page := "Text with `a -x\n-y` and\n\n    sudo a 'b c' -z | d -e; f   # -g\n\n```\na > out && h\n```\n"
	var got [][]string
	for _, code := range codeIn(page) {
		got = append(got, CommandLines(code)...)
	}
	want := [][]string{{"a", "b c", "-z"}, {"d", "-e"}, {"f"}, {"a"}, {"out"}, {"h"}, {"a", "-x", "-y"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestUnlistedFlags(t *testing.T) {
	page := &cli.Page{Flags: []cli.FlagGroup{{Flags: []cli.Flag{
		{Long: "switch", Short: "s"}, {Long: "value", Short: "v", Value: "N"}, {Long: "maybe", Value: "N", Optional: true},
	}}}}
	got := UnlistedFlags(page, []string{"-s", "-v", "-5", "-v7", "-sv", "-x", "--value", "--nope", "--value=1", "--maybe", "--no", "-sz", "-", "--others=1", "--", "-q"})
	if diff := cmp.Diff([]string{"--no", "-z", "--others"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
