package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// nonsense are values that no flag, or only a few flags can have.
var nonsense = []string{"nonsense", "5", "-1", "", "0", "99999999999999999999", "1e9", "5x", "0x", "a\"b", "%d", ":", "=", "@"}

// The error for a wrong value of a flag has the flag's name, and no words of Go's libraries.
func TestNonsenseValues(t *testing.T) {
	// Copies, because some commands write next to their input when no output is named.
	dir, trace, other := t.TempDir(), "c-leaks.rtrace", "c-leaks-nosep.rtrace"
	for _, name := range []string{trace, other} {
		data, err := os.ReadFile(filepath.Join(spRtraceCorpus, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// Flags and arguments that some flags need.
	with := map[string][]string{
		"timeline": {"--by=thread"}, "postproc": {"-c"}, "heapmap": {"-o", "map"}, "diff": {other}, "stats": {trace}, "mptrace": {"-H", "hatf"}, "graphs": {"overview", "-o", "graphs"},
		"from-function": {"main"}, "function-address": {trace, "main"}, "rename": {"1", "name"}, "pagemap": {"-p"},
	}
	t.Chdir(dir)
	tried := 0
	for _, c := range commands() {
		var all flags
		c.setup(&all)
		all.finish()
		all.VisitAll(func(f *pflag.Flag) {
			if f.NoOptDefVal != "" || c.name == "replay" && f.Name == "malloc" {
				return
			}
			tried++
			names := []string{"--" + f.Name}
			if f.Name == "own-alloc-emph-limit" { // as in another program
				names = append(names, "--own-alloc-limit")
			}
			if f.Shorthand != "" {
				names = append(names, "-"+f.Shorthand+" ")
			}
			for _, value := range nonsense {
				args := append([]string{c.name}, with[c.name]...)
				args = append(args, "--"+f.Name+"="+value)
				if f.Name != "input-file" && f.Name != "in" && c.name != "function-address" && c.name != "rename" {
					args = append(args, trace)
				}
				_, errOut, code := runRtrace("", args...)
				if code == cli.Usage {
					testutil.PlainUsage(t, errOut, names...)
				}
			}
		})
	}
	if tried < 100 {
		t.Errorf("only %d flags were tried", tried)
	}
}

// Common mistakes, and their messages.
func TestMistakes(t *testing.T) {
	trace := spRtraceCorpus + "/c-leaks.rtrace"
	for args, want := range map[string]string{
		"leak " + trace:                "rtrace: unknown subcommand \"leak\"; did you mean rtrace leaks?",
		trace:                          "rtrace: " + trace + " is a file, and the subcommand is missing; did you mean rtrace info " + trace + "?",
		"-r leaks " + trace:            "rtrace: -r: flags come after the subcommand; did you mean rtrace leaks -r?",
		"--nonsense":                   "rtrace: unknown flag --nonsense",
		"nonsense":                     "rtrace: unknown subcommand \"nonsense\"",
		"help reprot":                  "rtrace: unknown subcommand \"reprot\"; did you mean rtrace report?",
		"leaks --minsize 4K " + trace:  "rtrace leaks: unknown flag --minsize; did you mean --min-size?",
		"leaks --by functon " + trace:  "rtrace leaks: --by functon: not one of stack, function, file, line, module, size, thread, process; did you mean --by function?",
		"leaks --min-size 4Q " + trace: "rtrace leaks: --min-size 4Q: not a size; write bytes such as 4096, or a number with K, M or G such as 8M",
		"leaks --top -1 " + trace:      "rtrace leaks: --top -1: the number is too small; write one from 0 on",
		"leaks -top 1 " + trace:        "rtrace leaks: unknown flag -top; did you mean --top?",
		"convert -f jsnl " + trace:     "rtrace convert: -f jsnl: not one of sprtrace, text, jsonl, mtrc, swap, nettrace, pprof, folded, speedscope, dhat, heaptrack, parquet; did you mean -f jsonl?",
		"timeline --width 5 " + trace:  "rtrace timeline: --width 5: the number is too small; write one from 480 to 16384",
		"timeline --in":                "rtrace timeline: --in: the value is missing; write --in FILE",
	} {
		_, errOut, code := runRtrace("", strings.Fields(args)...)
		first, _, _ := strings.Cut(errOut, "\n")
		if code != cli.Usage || first != want {
			t.Errorf("%s: exit code %d\n got %s\nwant %s", args, code, first, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	const elf = "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	name := filepath.Join(t.TempDir(), "file")
	for text, want := range map[string]string{
		elf + "\x04\x00": "a core file", elf + "\x00\x04": "a core file", elf + "\x03\x00": "a program or a library", elf: "a program or a library",
		"notes\nof mine": "a text, and not a trace that rtrace knows", "\x00\x01": "not a trace that rtrace knows", "\xff\xfe": "not a trace that rtrace knows",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := kindOf(name); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
