package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/recording/output"
)

// attachments are the files that go with a trace, as NAME=FILE.
type attachments []output.Copy

var _ pflag.Value = (*attachments)(nil)

// attachmentName matches the names of attachments: the protocol of sp-rtrace allows these,
// and they are a part of a file's name.
var attachmentName = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// Set adds a file.
func (a *attachments) Set(text string) error {
	name, path, ok := strings.Cut(text, "=")
	switch {
	case !ok || path == "":
		return &flags.ValueError{Wrong: "not an attachment", Write: "one as NAME=FILE"}
	case !attachmentName.MatchString(name):
		return fmt.Errorf("an attachment cannot be called %q: its name is made of letters and digits, 64 at most", name)
	case name == output.SideAttachment:
		return fmt.Errorf("an attachment cannot be called %s: that is the trace's own", name)
	case slices.ContainsFunc(*a, func(x output.Copy) bool { return x.Name == name }):
		return fmt.Errorf("there are two attachments %s", name)
	}
	*a = append(*a, output.Copy{Name: name, Path: path})
	return nil
}

// String returns what was set.
func (a *attachments) String() string {
	var all []string
	for _, x := range *a {
		all = append(all, x.Name+"="+x.Path)
	}
	return strings.Join(all, " ")
}

// Type names the kind of value for pflag.
func (a *attachments) Type() string { return "attachment" }

func (a *attachments) declare(f *pflag.FlagSet) {
	f.Var(a, "attach", "copy a file to the directory of the trace, as PID-NAME-N, and name it in the trace: `NAME=FILE`; may be repeated")
}
