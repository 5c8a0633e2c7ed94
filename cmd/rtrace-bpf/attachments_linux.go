package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/outfile"
	"rtrace-bpf/trace"
)

// attachments are the files that go with a trace, as NAME=FILE.
type attachments []attachment

type attachment struct{ name, path string }

var _ pflag.Value = (*attachments)(nil)

// attachmentName is what an attachment may be called: so much the protocol of sp-rtrace
// allows, and it is a part of a file's name.
var attachmentName = regexp.MustCompile(`^[A-Za-z0-9]{1,64}$`)

// Set adds a file.
func (a *attachments) Set(text string) error {
	name, path, ok := strings.Cut(text, "=")
	switch {
	case !ok || path == "":
		return &flags.ValueError{Wrong: "not an attachment", Write: "one as NAME=FILE"}
	case !attachmentName.MatchString(name):
		return fmt.Errorf("an attachment cannot be called %q: its name is made of letters and digits, 64 at most", name)
	case name == sideAttachment:
		return fmt.Errorf("an attachment cannot be called %s: that is the trace's own", name)
	case slices.ContainsFunc(*a, func(x attachment) bool { return x.name == name }):
		return fmt.Errorf("there are two attachments %s", name)
	}
	*a = append(*a, attachment{name, path})
	return nil
}

// String returns what was set.
func (a *attachments) String() string {
	var all []string
	for _, x := range *a {
		all = append(all, x.name+"="+x.path)
	}
	return strings.Join(all, " ")
}

// Type names the kind of value for pflag.
func (a *attachments) Type() string { return "attachment" }

func (a *attachments) declare(f *pflag.FlagSet) {
	f.Var(a, "attach", "copy a file to the trace's folder, as PID-NAME-N, and name it in the trace: `NAME=FILE`; may be repeated")
}

// check says what attachments do not go with.
func (a attachments) check(c *config) error {
	if len(a) == 0 {
		return nil
	}
	return c.checkAttaching("--attach")
}

// checkAttaching says what files beside the trace do not go with.
func (c *config) checkAttaching(flag string) error {
	switch {
	case c.toStdout():
		return fmt.Errorf("%s writes files to the folder of the trace, and -o - has none: name a file or a directory", flag)
	case !slices.Contains([]string{"sprtrace", "text", "jsonl"}, c.format): // what rtrace rename can change
		return fmt.Errorf("%s: %s has no place for the names of files; sprtrace, text and jsonl have", flag, c.format)
	case c.dotnet.on && !c.dotnet.native:
		return fmt.Errorf("%s does not go with --dotnet alone, where the runtime tells of the allocations", flag)
	}
	return nil
}

// attachFiles copies the files to the folder of the trace.
func (x *session) attachFiles() error {
	if len(x.config.attach) > 0 && !x.out.Regular() {
		return cli.Usagef("--attach copies files to the folder of the trace, and %s is no file: name a file or a directory", x.out.Path())
	}
	for _, a := range x.config.attach {
		if err := x.attachFile(a); err != nil {
			return fmt.Errorf("attach %s: %w", a.name, err)
		}
	}
	return nil
}

func (x *session) attachFile(a attachment) error {
	// What would make the opening wait is not opened for long.
	from, err := os.OpenFile(a.path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	info, err := from.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", a.path)
	}
	to, err := outfile.CreateNumbered(filepath.Dir(x.out.Path()), fmt.Sprintf("%d-%s", x.pid, a.name), "")
	if err != nil {
		return err
	}
	x.attached = append(x.attached, to)
	x.attachments = append(x.attachments, trace.Attachment{Name: a.name, Path: filepath.Base(to.Path())})
	_, err = io.Copy(to, from)
	return err
}

// closeAttached completes the copies.
func (x *session) closeAttached() error {
	var err error
	for _, f := range x.attached {
		err = errors.Join(err, f.Close())
	}
	return err
}

// dropAttached removes them.
func (x *session) dropAttached() error {
	var err error
	for _, f := range x.attached {
		err = errors.Join(err, f.Discard())
	}
	return err
}
