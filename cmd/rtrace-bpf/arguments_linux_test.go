package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// nonsense are values that few flags or none can have.
var nonsense = []string{"nonsense", "5", "-1", "", "0", "99999999999999999999", "1e9", "5x", "0x", "a\"b", "%d", ":", "=", "@"}

// TestNonsenseValues checks that an error about the value of a flag names the flag, and
// does not quote an error of Go's libraries.
func TestNonsenseValues(t *testing.T) {
	var all config
	all.declare()
	tried := 0
	all.flags.VisitAll(func(f *pflag.Flag) {
		if f.NoOptDefVal != "" {
			return
		}
		tried++
		for _, value := range nonsense {
			names := []string{"--" + f.Name}
			if f.Shorthand != "" {
				names = append(names, "-"+f.Shorthand+" ", "-"+f.Shorthand+",", "-"+f.Shorthand+":")
			}
			for _, with := range [][]string{{"-p", "1"}, {"-p", "1", "--format=swap"}, {"-p", "1", "--format=mtrc"}, {"-p", "1", "--format=nettrace"}, {"-p", "1", "--dotnet"}} {
				var c config
				if err := c.parse(append(with, "--"+f.Name+"="+value), settings{}); err != nil && !errors.Is(err, pflag.ErrHelp) {
					testutil.PlainUsage(t, err.Error(), names...)
				}
			}
		}
	})
	if tried < 40 {
		t.Errorf("only %d flags were tried", tried)
	}
}

// TestBinaryToTerminal checks that a trace in a binary format is not written to a terminal.
func TestBinaryToTerminal(t *testing.T) {
	for args, want := range map[string]string{
		"-p 1 -o -":                                   "rtrace-bpf: -o -: standard output is a terminal, and sprtrace is binary\nhint: add --format text to watch the calls, or pipe the trace to a program\n",
		"-p 1 -o stdout --format mtrc":                "rtrace-bpf: -o -: standard output is a terminal, and mtrc is binary\n",
		"-p 1 -o - --format nettrace":                 "rtrace-bpf: -o -: standard output is a terminal, and nettrace is binary\n",
		"--version -o - --format text -p 1 --dry-run": "",
	} {
		var errOut strings.Builder
		code := run(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &strings.Builder{}, Err: &errOut, OutTerminal: true}, strings.Fields(args), settings{})
		if !strings.HasPrefix(errOut.String(), want) || (code == cli.OK) != (want == "") {
			t.Errorf("%s: exit code %d, %s", args, code, errOut.String())
		}
	}
}

// TestMistakes checks the messages about common mistakes.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	script, text := filepath.Join(dir, "app"), filepath.Join(dir, "rtrace-raw-1-0")
	if err := errors.Join(os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755), os.WriteFile(text, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		"24345":                              "24345: did you mean -p 24345?",
		"-p 1 2":                             "2: did you mean -p 2?",
		"sh":                                 "sh: did you mean -- sh, to start it, or --comm sh, to trace the processes of that name?",
		script:                               script + ": did you mean -- " + script + ", to start it?",
		text:                                 text + " is a file; if it is a trace, read it with rtrace, as rtrace info " + text,
		"no-such-thing":                      "no-such-thing belongs to no flag; select a process with -p PID or --comm NAME, or write a command after --",
		"-p nginx":                           "-p nginx: not a process ID; did you mean --comm nginx?",
		"-p 1 --duration 5":                  "--duration 5: a time needs a unit; did you mean --duration 5s?",
		"-p 1 --duratoin 5s":                 "unknown flag --duratoin; did you mean --duration?",
		"-p 1 --max-size 10":                 "--max-size 10: too small; write 2M or more, because 1M of a trace can wait in memory",
		"-p 1 --max-rate 4q":                 "--max-rate 4q: not a number; write one such as 4000 or 4k",
		"-p 1 --format tex":                  "--format tex: not one of sprtrace, text, jsonl, mtrc, swap, nettrace; did you mean --format text?",
		"-p 1 --unwind ehh":                  "--unwind ehh: not one of auto, eh, fp, helper, none; did you mean --unwind eh?",
		"-pid 7":                             "-pid: long names have two hyphens; did you mean --pid?",
		"-p 1 -e file,mmap":                  "-e file,mmap: no module \"file,mmap\"; did you mean -e file:mmap?",
		"-p 1 -e memory:fle":                 "-e memory:fle: no module \"fle\"; did you mean -e memory:file?",
		"-p 1 -e nosuch":                     "-e nosuch: no module \"nosuch\"; rtrace-bpf modules lists all modules",
		"-p 1 --allocator jemaloc":           "--allocator jemaloc: did you mean --allocator jemalloc?",
		"-p 1 --attach notes":                "--attach notes: not an attachment; write one as NAME=FILE",
		"-p 1 --symbol malloc":               "--symbol malloc: not a function and its address; write one as malloc=401136, the address in hexadecimal",
		"-p 1 --ready-file " + text:          "--ready-file " + text + ": the file exists; remove it first",
		"--toggle nginx":                     "--toggle nginx: not a process ID; write a number such as 4711",
		"":                                   "nothing is selected; name a process with -p PID, all of a kind with --comm, --cgroup or --uid, or a command to start after --",
		"-p 1 --format swap --swap-system 5": "--swap-system 5: a time needs a unit; did you mean --swap-system 5s?",
	} {
		var errOut strings.Builder
		code := run(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &errOut, Err: &errOut}, strings.Fields(args), settings{})
		first, _, _ := strings.Cut(errOut.String(), "\n")
		if code != cli.Usage || first != "rtrace-bpf: "+want {
			t.Errorf("%s: exit code %d\n got %s\nwant rtrace-bpf: %s", args, code, first, want)
		}
	}
}
