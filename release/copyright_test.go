package release

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The package's copyright file has both licences, in the form that Debian's programs read,
// and each file has one.
func TestCopyright(t *testing.T) {
	text, err := os.ReadFile("copyright")
	if err != nil {
		t.Fatal(err)
	}
	texts, of := map[string]string{}, map[string]string{} // of licences, and licences of patterns
	for i, paragraph := range strings.Split(strings.TrimSpace(string(text)), "\n\n") {
		fields := map[string]string{}
		last := ""
		for line := range strings.Lines(paragraph) {
			switch name, value, ok := strings.Cut(line, ":"); {
			case line[0] == ' ' && last != "":
				fields[last] += line
			case ok:
				last = name
				fields[last] = strings.TrimSpace(value) + "\n"
			default:
				t.Fatalf("no field: %s", line)
			}
		}
		short, long, _ := strings.Cut(fields["License"], "\n")
		switch {
		case i == 0:
			if want := "https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n"; fields["Format"] != want {
				t.Errorf("format %q", fields["Format"])
			}
		case fields["Files"] != "":
			if fields["Copyright"] == "" || short == "" {
				t.Errorf("something is missing: %q", fields)
			}
			for pattern := range strings.FieldsSeq(fields["Files"]) {
				of[pattern] = short
			}
		default:
			texts[short] = long
		}
	}
	want := map[string]string{"*": "Apache-2.0", "bpf/*": "GPL-2.0-only or BSD-2-Clause", "tracer/*_bpfel.o": "GPL-2.0-only or BSD-2-Clause"}
	if diff := cmp.Diff(want, of); diff != "" {
		t.Errorf("licences of files (-want +got)\n%s", diff)
	}
	for name, of := range map[string]string{"Apache-2.0": "/usr/share/common-licenses/Apache-2.0", "GPL-2.0-only": "/usr/share/common-licenses/GPL-2", "BSD-2-Clause": "Redistributions in binary form must"} {
		if !strings.Contains(texts[name], of) {
			t.Errorf("the text of %s: %q", name, texts[name])
		}
	}
}
