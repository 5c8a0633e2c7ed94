package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHelpTopics(t *testing.T) {
	p := offering()
	p.Intro = "First sentence. Second one. Third one. Fourth one."
	p.Common = []ListRow{{Name: "file", Text: "a text that is shorter; not this"}, {Name: "maybe"}}
	for topic, want := range map[string]string{
		"brief": "Usage: tool odd [flags] FILE\n       tool odd 'quoted'\n\nFirst sentence. Second one. Third one.\n\n" +
			"      --file FILE       a text that is shorter\n      --maybe[=WORD]    m\n\n  tool odd -l 'x y' | grep '^.'\n\n" +
			"More: tool odd --help=all, or =TOPIC: about, list-\"of\"-two, group, examples,\nexit-status\n",
		"list-\"of\"-two": "List \"of\" two:\n  a-b  .c\n",
		"examples":        "Examples:\n  do it:\n      tool odd -l 'x y' | grep '^.'\n",
		"exit-status":     "Exit status:\n  0  done\n  1  failed\n  2  the command line is wrong\n  3  done, but the input is incomplete: it was cut, its tracer did not finish, or it has records that cannot be read\n  141  the reader of the output went away, as head does\n",
	} {
		var got bytes.Buffer
		if err := p.WriteHelp(&got, topic); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("%s (-want +got)\n%s", topic, diff)
		}
	}
	for _, topic := range p.Topics() {
		if err := p.WriteHelp(&bytes.Buffer{}, topic); err != nil {
			t.Error(err)
		}
	}
	for topic, want := range map[string]string{"exampels": "did you mean --help=examples?", "x": "there are all, about, "} {
		if err := p.WriteHelp(&bytes.Buffer{}, topic); err == nil || Code(err) != Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", topic, err)
		}
	}
}
