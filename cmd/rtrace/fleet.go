package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	groups "rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/internal/analysis/fleet"
	"rtrace-bpf/internal/analysis/sites"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// fleetFlags are the flags of commands that add up several traces.
type fleetFlags struct {
	per      string
	folderIs string
}

func (f *fleetFlags) add(to *pflag.FlagSet) {
	to.Var(groups.Word(&f.per, "", string(fleet.PerTrace), string(fleet.PerHost), string(fleet.PerService)), "per", "print rows for each `WHAT`: trace, host or service (default: for all traces together)")
	f.addFolder(to, "")
}

// addFolder adds only --folder-is. before precedes its text.
func (f *fleetFlags) addFolder(to *pflag.FlagSet, before string) {
	to.Var(groups.Word(&f.folderIs, "", string(fleet.PerHost), string(fleet.PerService)), "folder-is", before+"the name of the folder that a trace is in is its `WHAT`: host or service (default: hosts are unknown, and the service is the name of the program in the trace)")
}

// several reports whether args or flags request sums over traces, although it may be one.
func (f *fleetFlags) several(args []string) bool {
	if len(args) != 1 {
		return len(args) > 1
	}
	info, err := os.Stat(args[0])
	return f.per != "" || f.folderIs != "" || err == nil && info.IsDir()
}

// check returns an error if the flags were given for a single trace.
func (f *fleetFlags) check(args []string) error {
	if len(args) == 0 && f.per+f.folderIs != "" {
		return cli.Usagef("--per and --folder-is are for traces in files, and there is no FILE")
	}
	return nil
}

// checkGroups returns an error if groups of several traces have nothing in common.
func (g *groupFlags) checkGroups() error {
	switch {
	case g.key == sites.ByThread, g.key == sites.ByProcess:
		return cli.WithHint(cli.Usagef("--by %s: the threads and processes of several traces have nothing in common", g.key), "name one FILE")
	case g.addresses:
		return cli.WithHint(cli.Usagef("--addresses: addresses differ from trace to trace"), "name one FILE")
	}
	return nil
}

// fleetTrace is a trace of a fleet.
type fleetTrace struct {
	fleet.Member
	notes []string // what may be wrong with its figures
	err   error    // why it is not included, or incomplete
}

// included reports whether the figures of the trace count.
func (t *fleetTrace) included() bool { return isIncomplete(t.err) }

func (t *fleetTrace) note(err error) { t.notes = append(t.notes, err.Error()) }

// fleetReader reads the traces of a fleet, one after the other.
type fleetReader struct {
	flags   *fleetFlags
	in      inputFlags
	streams cli.Streams
	command string
	traces  []*fleetTrace
	read    fleet.Set // those that are included
}

// open finds the traces that args name. One that is named twice counts once.
func (f *fleetReader) open(args []string) error {
	seen := make(map[string]bool)
	for _, arg := range args {
		if arg == "-" {
			return cli.Usagef("standard input cannot be one of several traces")
		}
		files, err := tracesOf([]string{arg})
		if err != nil {
			f.traces = append(f.traces, &fleetTrace{Member: fleet.Member{File: arg}, err: err})
		}
		for _, name := range files {
			path := wholePath(name)
			if seen[path] {
				continue
			}
			seen[path] = true
			t := &fleetTrace{Member: fleet.Member{File: name}}
			t.Host, t.Service = f.flags.place(path)
			f.traces = append(f.traces, t)
		}
	}
	return nil
}

// place returns the host and the service that the folder of a file names. path is from
// wholePath.
func (f *fleetFlags) place(path string) (host, service string) {
	switch folder := filepath.Base(filepath.Dir(path)); fleet.Per(f.folderIs) {
	case fleet.PerHost:
		return folder, ""
	case fleet.PerService:
		return "", folder
	}
	return "", ""
}

// wholePath returns the path of a file without symbolic links, as far as it is known.
func wholePath(name string) string {
	if path, err := filepath.EvalSymlinks(name); err == nil {
		name = path
	}
	if path, err := filepath.Abs(name); err == nil {
		return path
	}
	return name
}

// each opens every trace and calls read, and then add if the trace is included. read gets the
// function that takes warnings. The error is what to report in the end.
func (f *fleetReader) each(ctx context.Context, args []string, read func(*input, func(error)) error, add func(*fleetTrace) error) error {
	if err := f.open(args); err != nil {
		return err
	}
	return f.eachOpened(ctx, read, add)
}

// eachOpened is like each, after open.
func (f *fleetReader) eachOpened(ctx context.Context, read func(*input, func(error)) error, add func(*fleetTrace) error) error {
	for _, t := range f.traces {
		if t.err == nil {
			t.err = f.one(ctx, t, read)
		}
		if t.included() {
			if err := add(t); err != nil {
				t.err = err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if t.included() {
			f.read.Add(&t.Member)
		} else {
			t.notes = nil
		}
	}
	return f.outcome()
}

// one reads a trace.
func (f *fleetReader) one(ctx context.Context, t *fleetTrace, read func(*input, func(error)) error) (err error) {
	in, err := f.in.openNamed(ctx, f.streams.In, f.command, t.File, t.note)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	in.Reader = &serviceReader{in.Reader, t}
	return in.outcome(read(in, t.note))
}

// serviceReader is a trace.Reader that finds the name of the program.
type serviceReader struct {
	trace.Reader
	of *fleetTrace
}

// ReadRecord implements trace.Reader.
func (s *serviceReader) ReadRecord(r *trace.Record) error {
	err := s.Reader.ReadRecord(r)
	if err == nil && r.Kind == trace.KindProcess && s.of.Service == "" {
		s.of.Service = strings.Clone(r.Process.Program())
	}
	return err
}

// sameResource returns an error if a trace has another type of resource than those before it.
// The first one selects the type, because it may have only one.
func (f *fleetReader) sameResource(b *blockFlags, resource string) error {
	if f.read.Count().Traces == 0 {
		b.resource = resource
	}
	if resource != b.resource {
		return fmt.Errorf("it has the resource %s, and the traces before it have %s", resource, b.resource)
	}
	return nil
}

// left returns how many traces are not included, and how many are incomplete.
func (f *fleetReader) left() (out, incomplete int) {
	for _, t := range f.traces {
		switch {
		case !t.included():
			out++
		case t.err != nil:
			incomplete++
		}
	}
	return out, incomplete
}

// outcome returns the error of reading the fleet. It is that of the first trace if none is
// included.
func (f *fleetReader) outcome() error {
	out, incomplete := f.left()
	switch {
	case len(f.traces) == 0:
		return nil
	case out == len(f.traces):
		return f.traces[0].err
	case out+incomplete > 0:
		return cli.Incompletef("%s: could not be read %d, incomplete %d; the output names them", plural(uint64(len(f.traces)), "trace"), out, incomplete)
	}
	return nil
}

// text returns an error without the file that it names already.
func (t *fleetTrace) text(what string) string {
	if strings.Contains(what, t.File) {
		return what
	}
	return fmt.Sprintf("%s: %s", t.File, what)
}
