package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/recording/memory"
)

// outputFlags select where traces go, and which files go with them.
type outputFlags struct {
	path       string // of a file or a directory, or - for standard output; empty for the current directory
	side       string // the side file of a trace to standard output
	unbuffered bool
	attach     attachments
	snapshots  snapshotFlags
	pagemap    bool
	postproc   postprocFlags
}

func (o *outputFlags) declare(f *pflag.FlagSet) {
	f.StringVarP(&o.path, "output", "o", "", "write to the new file `PATH`, or into that directory, which is created if PATH ends with / and is missing; - is standard output; a FIFO is opened when it has a reader (default: SP_RTRACE_OUTPUT_DIR, else the current directory)")
	f.StringVar(&o.side, "side", "", "with -o -, write what the format cannot represent to `FILE`")
	o.snapshots.declare(f)
	o.postproc.declare(f)
	f.BoolVarP(&o.unbuffered, "no-buffer", "B", false, "write each event within a few milliseconds instead of within a second; costs rtrace-bpf about 2% of a processor")
	o.attach.declare(f)
	f.BoolVar(&o.pagemap, "pagemap", false, "attach the kernel's flags of each page of the process at the end of the trace, for rtrace pagemap; the same as the module pagemap of -e")
}

// checkSide returns an error if the side file has a name already.
func (o *outputFlags) checkSide(*config) error {
	if o.side != "" && !o.toStdout() {
		return errors.New("--side goes with -o -; other outputs name their side file themselves")
	}
	return nil
}

// check returns an error if files that go with the trace do not go with other flags.
func (o *outputFlags) check(c *config) error {
	return errors.Join(o.postproc.check(c), o.checkAttached(c), o.checkPagemap(c), o.snapshots.check(c))
}

func (o *outputFlags) checkAttached(c *config) error {
	if len(o.attach) == 0 {
		return nil
	}
	return c.checkAttaching("--attach")
}

func (o *outputFlags) checkPagemap(c *config) error {
	if !c.pagemapped() {
		return nil
	}
	for _, a := range o.attach {
		if slices.Contains(memory.PageFiles, a.Name) {
			return fmt.Errorf("--pagemap attaches %s itself: give that of --attach another name", a.Name)
		}
	}
	return c.checkAttaching("--pagemap")
}

// pagemapped reports whether the flags of pages are recorded.
func (c *config) pagemapped() bool { return c.output.pagemap || c.modules.has(pagemapModule) }

// checkAttaching returns an error if the output has no place for files that go with the
// trace. flag is the one that asks for such a file.
func (c *config) checkAttaching(flag string) error {
	switch {
	case c.output.toStdout():
		return fmt.Errorf("%s writes files to the directory of the trace, and -o - has none: name a file or a directory", flag)
	case !slices.Contains([]string{"sprtrace", "text", "jsonl"}, c.format.name): // rtrace rename can change the names in these
		return fmt.Errorf("%s: %s has no place for the names of files; sprtrace, text and jsonl have", flag, c.format.name)
	case c.dotnet.alone():
		return fmt.Errorf("%s does not go with --dotnet alone, which records no native calls", flag)
	}
	return nil
}

// checkTerminal returns an error if binary data would go to a terminal.
func (c *config) checkTerminal(s cli.Streams) error {
	if !c.output.toStdout() || !s.OutTerminal || c.output.postproc.on || c.limits.dryRun {
		return nil
	}
	if format, err := encoder.Lookup(c.format.name); err != nil || !format.Binary {
		return err
	}
	return cli.WithHint(fmt.Errorf("-o -: standard output is a terminal, and %s is binary", c.format.name),
		"add --format text to watch the calls, or pipe the trace to a program")
}

func (o *outputFlags) toStdout() bool { return o.path == "-" || o.path == "stdout" }

// directory returns where traces go unless -o names a file.
func (o *outputFlags) directory() string {
	if o.path == "" {
		return "."
	}
	return o.path
}

// takesOne reports whether the output is a file, which can hold one trace only.
func (o *outputFlags) takesOne() bool {
	info, err := os.Stat(o.directory())
	return err == nil && !info.IsDir() || errors.Is(err, os.ErrNotExist) && !endsAsDirectory(o.path)
}

// endsAsDirectory reports whether a path cannot be that of a file.
func endsAsDirectory(path string) bool { return strings.HasSuffix(path, string(filepath.Separator)) }
