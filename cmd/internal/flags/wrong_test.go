package flags

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// declared returns flags of each kind.
func declared() *Groups {
	var g Groups
	set := g.Group("Flags")
	set.Float64("limit", 1, "`PERCENT`")
	set.IntP("depth", "d", 1, "`N`")
	set.Uint64("pages", 1, "`N`")
	set.BoolP("all", "a", false, "all")
	set.CountP("verbose", "v", "more")
	set.VarP(new(PIDs), "pid", "p", "`PID`")
	set.Var(new(PID), "toggle", "`PID`")
	set.Var(new(Size), "size", "`BYTES`")
	set.Var(new(Count), "rate", "`N`")
	set.Var(new(Duration), "duration", "`TIME`")
	set.VarP(Word(new(string), "", "text", "jsonl", "sprtrace"), "format", "f", "`FORMAT`")
	set.Var(Word(new(string), "on", "on", "off"), "names", "`WHETHER`")
	set.StringSlice("labels", nil, "`LABELS`")
	set.Var(Number(new(int), 5, 1, 16), "kb", "`KB`")
	set.Var(Number(new(int), 5, 1, Unbounded), "rows", "`N`")
	set.StringP("output", "o", "", "`PATH`")
	OfferSeveral(set, "labels", ",", "thread", "none")
	g.Hidden().Int("durable", 0, "")
	g.Alias("depth", "frames")
	return &g
}

// The error for a wrong command line uses the user's words: the flag, the value, and what to
// write.
func TestWrong(t *testing.T) {
	for args, want := range map[string]string{
		"--limit=x":                    "--limit x: not a number; write one such as 10 or 2.5",
		"--depth=1.5":                  "--depth 1.5: not a whole number; write one such as 10",
		"-dx":                          "-d x: not a whole number; write one such as 10",
		"--frames x":                   "--frames x: not a whole number; write one such as 10",
		"--depth=99999999999999999999": "--depth 99999999999999999999: the number is too large; write a smaller one",
		"--kb 17":                      "--kb 17: the number is too large; write one from 1 to 16",
		"--kb 0":                       "--kb 0: the number is too small; write one from 1 to 16",
		"--kb x":                       "--kb x: not a whole number; write one from 1 to 16",
		"--rows -1":                    "--rows -1: the number is too small; write one from 1 on",
		"--pages=-1":                   "--pages -1: not a whole number from 0 on; write one such as 10",
		"--all=maybe":                  "--all=maybe: the flag is a switch; write true or false, or nothing",
		"-p abc":                       "-p abc: not a process ID; did you mean --comm abc?",
		"--pid=1,abc":                  "--pid 1,abc: not a process ID; write a number such as 4711",
		"-p /bin/sh":                   "-p /bin/sh: not a process ID; write a number such as 4711",
		"-p 0":                         "-p 0: not a process ID; write a number such as 4711",
		"-p -7":                        "-p -7: not a process ID; write a number such as 4711",
		"-p 99999999999":               "-p 99999999999: not a process ID; write a number such as 4711",
		"--pid=":                       `--pid '': not a process ID; write a number such as 4711`,
		"-pid 7":                       "-pid: long names have two hyphens; did you mean --pid?",
		"-pid=7":                       "-pid: long names have two hyphens; did you mean --pid?",
		"-depth 7":                     "-depth: long names have two hyphens; did you mean --depth?",
		"-duration 7":                  "-duration: long names have two hyphens; did you mean --duration?",
		"-limit 7":                     "unknown flag -limit; did you mean --limit?",
		"--toggle x":                   "--toggle x: not a process ID; write a number such as 4711",
		"--size 8Q":                    "--size 8Q: not a size; write bytes such as 4096, or a number with K, M or G such as 8M",
		"--rate many":                  "--rate many: not a number; write one such as 4000 or 4k",
		"--duration 5":                 "--duration 5: a time needs a unit; did you mean --duration 5s?",
		"--duration=5sec":              "--duration 5sec: not a time; did you mean --duration 5s?",
		"--duration 1.5minutes":        "--duration 1.5minutes: not a time; did you mean --duration 1.5m?",
		"--duration 10S":               "--duration 10S: not a time; did you mean --duration 10s?",
		"--duration 2d":                "--duration 2d: the largest unit is the hour; write 24h for a day",
		"--duration -5s":               "--duration -5s: a time cannot be negative; write one such as 10s or 5m",
		"--duration soon":              "--duration soon: not a time; write a number and its unit, such as 10s or 5m",
		"-f tex":                       "-f tex: not one of text, jsonl, sprtrace; did you mean -f text?",
		"--format=xml":                 "--format xml: not one of text, jsonl, sprtrace",
		"--names=":                     `--names '': not one of on, off`,
		`--labels a"b`:                 `--labels 'a"b': not a list; write names with commas between them, without quotation marks`,
		"--duratoin 5s":                "unknown flag --duratoin; did you mean --duration?",
		"--dur=5s":                     "unknown flag --dur; did you mean --duration?",
		"--nonsense":                   "unknown flag --nonsense",
		"-z":                           "unknown flag -z",
		"-az":                          "unknown flag -z",
		"-output x":                    "-output: long names have two hyphens; did you mean --output?",
		"--=x":                         "--=x is not a flag; write flags as --name, --name=VALUE or -n",
		"-p":                           "-p: the value is missing; write -p PID, such as -p 4711",
		"--duration":                   "--duration: the value is missing; write --duration TIME, such as --duration 10s",
		"--format":                     "--format: the value is missing; write --format FORMAT, such as --format text",
		"-o":                           "-o: the value is missing; write -o PATH",
	} {
		_, err := declared().Parse("test", strings.Fields(args))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", args, diff)
		}
	}
}

// An error of a setting from elsewhere than the arguments has the long name.
func TestWrongSetting(t *testing.T) {
	err := declared().Set("pid", "x y")
	if want := `--pid 'x y': not a process ID; write a number such as 4711`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestRight(t *testing.T) {
	for _, args := range []string{"-p 1,2 -p 3 --pid=4", "--duration 1h30m", "--duration 0", "--format= -f text", "--names off", "--labels thread,none", "-avv -o -", "--toggle 7"} {
		g := declared()
		if _, err := g.Parse("test", strings.Fields(args)); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		if pid := g.all("").Lookup("pid").Value.String(); strings.HasPrefix(args, "-p") && pid != "1,2,3,4" {
			t.Errorf("%s: processes %s", args, pid)
		}
	}
}

func TestWords(t *testing.T) {
	all := declared().all("")
	for name, want := range map[string][]string{"names": {"on", "off"}, "labels": {"thread", "none"}, "output": nil} {
		if diff := cmp.Diff(want, Words(all.Lookup(name))); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}
