package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// ran returns what a command line prints, and its exit code.
func ran(t *testing.T, args ...string) (out, errOut string, code cli.ExitCode) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), cli.Streams{In: strings.NewReader(""), Out: &stdout, Err: &stderr}, args, inFolder(t.TempDir()))
	return stdout.String(), stderr.String(), code
}

// A command line means the same with the verb as with the flag that it has replaced, and
// without the verb record.
func TestVerbsMeanFlags(t *testing.T) {
	for _, test := range []struct{ verb, flag string }{
		{"modules", "--list"},
		{"modules", "-l"},
		{"record -h=all", "--help=all"},
		{"help formats", "--help=formats"},
		{"help about", "--help=about"},
		{"record --version", "--version"},
		{"record -p 1 --format x", "-p 1 --format x"},
		{"record", ""},
		{"plan -p 2147483647", "-p 2147483647 --dry-run"},
		{"plan -p 2147483647", "record --dry-run -p 2147483647"},
		{"record -- /no/such", "-- /no/such"},
	} {
		out, errOut, code := ran(t, strings.Fields(test.verb)...)
		wantOut, wantErr, want := ran(t, strings.Fields(test.flag)...)
		if out != wantOut || errOut != wantErr || code != want || out+errOut == "" {
			t.Errorf("%q: exit code %d\n%s%s\n%q: exit code %d\n%s%s", test.verb, code, out, errOut, test.flag, want, wantOut, wantErr)
		}
	}
}

// What follows -- is a command, even if it has the name of a verb.
func TestVerbAsCommand(t *testing.T) {
	for _, v := range verbs() {
		for _, args := range [][]string{{"--", v.name, "-x"}, {"record", "--", v.name, "-x"}, {"-s", "-x", v.name, "-x"}} {
			var c config
			rest := args
			if rest[0] == "record" {
				rest = rest[1:]
			}
			if err := c.parse(rest, settings{}); err != nil || !slices.Equal(c.command, []string{v.name, "-x"}) {
				t.Errorf("%q: the command is %q, %v", args, c.command, err)
			}
		}
		if out, _, code := ran(t, v.name, "--help"); code != cli.OK || !strings.HasPrefix(out, "Usage: "+name+" "+v.name) {
			t.Errorf("%s --help prints\n%s", v.name, out)
		}
	}
}

// TestWrongVerbs checks the messages about command lines of verbs that are wrong.
func TestWrongVerbs(t *testing.T) {
	for args, want := range map[string]string{
		"reecord -p 1":            "rtrace-bpf: reecord: did you mean rtrace-bpf record?",
		"-p 1 plan":               "rtrace-bpf: plan: the verb comes first: rtrace-bpf plan; to start a program with that name, write it after --",
		"toggle":                  "rtrace-bpf toggle: the process is missing: rtrace-bpf toggle PID",
		"toggle nginx":            "rtrace-bpf toggle: nginx: not a process ID; write a number such as 4711",
		"toggle -p nginx":         "rtrace-bpf toggle: -p nginx: not a process ID; write a number such as 4711",
		"toggle 1 2":              "rtrace-bpf toggle: 2: toggle takes one process",
		"toggle --quite 1":        "rtrace-bpf toggle: unknown flag --quite; did you mean --quiet?",
		"mark 1":                  "rtrace-bpf mark: a mark needs one name: rtrace-bpf mark PID NAME",
		"mark -p 1 a b":           "rtrace-bpf mark: a mark needs one name: rtrace-bpf mark PID NAME",
		"modules file":            "rtrace-bpf modules: file: modules takes no arguments, and lists all modules",
		"modules --lst":           "rtrace-bpf modules: unknown flag --lst",
		"help dotent":             "rtrace-bpf: dotent: there is no such verb or topic; did you mean rtrace-bpf help dotnet?",
		"help plan modules":       "rtrace-bpf: help takes one verb or topic",
		"help --help=x":           "",
		"plan --duratoin 5s -p 1": "rtrace-bpf: unknown flag --duratoin; did you mean --duration?",
		"plan":                    "rtrace-bpf: nothing is selected; name a process with -p PID, all of a kind with --comm, --cgroup or --uid, or a command to start after --",
	} {
		_, errOut, code := ran(t, strings.Fields(args)...)
		first, _, _ := strings.Cut(errOut, "\n")
		if first != want || (code == cli.Usage) != (want != "") {
			t.Errorf("%s: exit code %d\n got %s\nwant %s", args, code, first, want)
		}
	}
}

// If other verbs have a flag that one does not have, the hint names them.
func TestFlagOfAnotherVerb(t *testing.T) {
	for args, want := range map[string]string{
		"toggle --duration 5s 1": "hint: --duration is a flag of rtrace-bpf record, rtrace-bpf top\n",
		"mark -b 5 1 x":          "hint: -b is a flag of rtrace-bpf record, rtrace-bpf top, rtrace-bpf plan\n",
		"modules --nonesuch":     "hint: run 'rtrace-bpf modules --help'\n",
	} {
		if _, errOut, code := ran(t, strings.Fields(args)...); code != cli.Usage || !strings.HasSuffix(errOut, want) {
			t.Errorf("%s: exit code %d\n%s", args, code, errOut)
		}
	}
}

// An error about the value of a verb's own flag names the flag, in words that a user knows.
func TestNonsenseOfVerbs(t *testing.T) {
	for _, v := range verbs() {
		if v.name == "record" || v.name == "plan" || v.name == "help" { // TestNonsenseValues has the flags of record
			continue
		}
		for _, g := range v.page().Flags {
			for _, f := range g.Flags {
				if f.Value == "" || f.Optional {
					continue
				}
				for _, value := range nonsense {
					if _, errOut, code := ran(t, v.name, "--"+f.Long+"="+value, "--help=about"); code == cli.Usage {
						testutil.PlainUsage(t, errOut, "--"+f.Long)
					}
				}
			}
		}
	}
}

// Help of a topic has each flag of it, and help of a verb names the topics that have the
// flags that it leaves out.
func TestHelpTopics(t *testing.T) {
	var c config
	c.declare()
	brief, _, _ := ran(t, "help", "record")
	all := ""
	for _, topic := range append(topicNames(), "general") {
		out, errOut, code := ran(t, "help", topic)
		if code != cli.OK || errOut != "" {
			t.Errorf("help %s: exit code %d, %s", topic, code, errOut)
		}
		all += out
	}
	c.flags.VisitAll(func(f *pflag.Flag) {
		hidden := f.Usage == ""
		if strings.Contains(all, "--"+f.Name+" ") == hidden && strings.Contains(all, "--"+f.Name+"[") == hidden {
			t.Errorf("--%s is in no topic of help, or is listed although it is hidden", f.Name)
		}
		if special := strings.HasPrefix(f.Name, "swap-") || strings.HasPrefix(f.Name, "mtrc-") || strings.HasPrefix(f.Name, "dotnet"); special && strings.Contains(brief, "\n      --"+f.Name) {
			t.Errorf("help record has --%s", f.Name)
		}
	})
	for _, want := range []string{"rtrace-bpf help formats", "rtrace-bpf help dotnet", "rtrace-bpf help modules"} {
		if !strings.Contains(brief, want) {
			t.Errorf("help record does not have %q\n%s", want, brief)
		}
	}
	if out, _, _ := ran(t, "help", "modules"); !strings.Contains(out, "rtrace-bpf modules - ") || !strings.Contains(out, "--resource ") {
		t.Errorf("help modules is about one of the verb and the topic:\n%s", out)
	}
}
