package main

import (
	"bytes"
	"context"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// parsed is the part of the configuration that options of sp-rtrace can change.
type parsed struct {
	output, postproc, enable  string
	depth                     int
	all, unbuffered, paused   bool
	toggle                    int
	list, post, quiet, strict bool
	follow                    bool
	command                   string
}

func (p *parsed) of(c *config) {
	*p = parsed{
		c.output.path, c.output.postproc.options, c.modules.enabled, c.stacks.depth, c.stacks.all, c.output.unbuffered, c.limits.startPaused,
		c.remote.toggle, c.modules.list, c.output.postproc.on, c.general.quiet, c.limits.strict, c.target.follow.on, strings.Join(c.command, " "),
	}
}

// TestOriginalOptions checks that options of sp-rtrace have their original meanings, that
// its environment variables set what the command line does not, and that errors about
// impossible options name a replacement.
func TestOriginalOptions(t *testing.T) {
	plain := parsed{enable: "memory", depth: 64}
	with := func(change func(p *parsed)) parsed {
		p := plain
		change(&p)
		return p
	}
	none := map[string]string{}
	set := func(pairs ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			m["SP_RTRACE_"+pairs[i]] = pairs[i+1]
		}
		return m
	}
	many := set("OUTPUT_DIR", "d", "BACKTRACE_DEPTH", "7", "BACKTRACE_ALL", "1", "DISABLE_EVENT_BUFFERING", "1", "POSTPROC", "-l", "PRELOAD", "memory:file")
	for _, test := range []struct {
		args string
		env  map[string]string
		want parsed
		err  string
	}{
		{"-p 1", none, plain, ""},
		{"-p 1 --output-dir d --backtrace-depth 5 --backtrace-all --disable-packet-buffering -q", none, with(func(p *parsed) {
			p.output, p.depth, p.all, p.unbuffered, p.quiet = "d", 5, true, true, true
		}), ""},
		{"-p 1 -o d -b5 -ABu -e memory:file -P-l --toggle-signal SIGUSR1", none, with(func(p *parsed) {
			p.output, p.depth, p.all, p.unbuffered, p.enable, p.post, p.postproc = "d", 5, true, true, "memory:file", true, "-l"
		}), ""},
		{"-S 10 -p 1 -s", none, plain, ""},
		{"-t 17", none, with(func(p *parsed) { p.toggle = 17 }), ""},
		{"-l", none, with(func(p *parsed) { p.list = true }), ""},
		{"-s -x app -l -x", none, with(func(p *parsed) { p.command = "app -l -x" }), ""},
		{"--start --execute app", none, with(func(p *parsed) { p.command = "app" }), ""},
		{"-x app", none, with(func(p *parsed) { p.command, p.paused = "app", true }), ""},
		{"-- app", none, with(func(p *parsed) { p.command = "app" }), ""},
		{"-x app", set("START", "1"), with(func(p *parsed) { p.command = "app" }), ""},
		{"--start-paused -x app", set("START", "1"), with(func(p *parsed) { p.command, p.paused = "app", true }), ""},
		{"-p 1", many, with(func(p *parsed) {
			p.output, p.depth, p.all, p.unbuffered, p.postproc, p.post, p.enable = "d", 7, true, true, "-l", true, "memory:file"
		}), ""},
		{"-p 1 -o e --backtrace-depth 8 --backtrace-all=false -P -c -e memory --no-buffer=false", many, with(func(p *parsed) {
			p.output, p.depth, p.postproc, p.post = "e", 8, "-c", true
		}), ""},
		{"-p 1", set("DISABLE_PACKET_BUFFERING", "1"), with(func(p *parsed) { p.unbuffered = true }), ""},
		{"-p 1", set("BACKTRACE_ALL", "0", "DISABLE_PACKET_BUFFERING", "", "READY", "1", "START", "1", "LIBUNWIND", "1", "TOGGLE_SIGNAL", "SIGUSR1"), plain, ""},
		{"-p 1 --unwind=fp", set("LIBUNWIND", "1"), plain, ""},
		{"-t 17", set("BACKTRACE_DEPTH", "x"), with(func(p *parsed) { p.toggle = 17 }), ""},
		{"-p 1", set("BACKTRACE_DEPTH", "x"), plain, `SP_RTRACE_BACKTRACE_DEPTH: --depth x: not a whole number; write one from 0 to 512`},
		{"-p 1 --format mtrc", set("POSTPROC", "-l"), plain, "SP_RTRACE_POSTPROC: -P goes with --format sprtrace"},
		{"-p 1", set("TOGGLE_SIGNAL", "12"), plain, "SP_RTRACE_TOGGLE_SIGNAL: "},
		{"-p 1 -e /usr/lib/sp-rtrace/libsp-rtrace-memory.so.0:libsp-rtrace-file.so", none, with(func(p *parsed) {
			p.enable = "/usr/lib/sp-rtrace/libsp-rtrace-memory.so.0:libsp-rtrace-file.so"
		}), ""},
		{"-p 1 -e main", none, plain, `-e main: no module "main"; nothing is loaded into the process`},
		{"-p 1 -e memory:audit", none, plain, "nothing is loaded into the process"},
		{"-p 1 -e ./libother.so", none, plain, `no module "./libother.so"`},
		{"-x", none, plain, "the command is missing: write it after --"},
		{"--start --start-paused -p 1", none, plain, "name one of --start and --start-paused"},
		{"-u --unwind=fp -p 1", none, plain, "--libunwind asks for stacks from unwind tables"},
		{"-S SIGUSR2 -p 1", none, plain, "SIGUSR1 to rtrace-bpf"},
		{"-m -p 1", none, with(func(p *parsed) { p.follow = true }), ""},
		{"--managed -p 1", none, with(func(p *parsed) { p.follow = true }), ""},
		{"--manage-preproc -p 1", none, with(func(p *parsed) { p.follow = true }), ""},
		{"-f -s -x app", none, with(func(p *parsed) { p.command, p.follow = "app", true }), ""},
		{"-p 1", set("MANAGE_PREPROC", "1"), with(func(p *parsed) { p.follow = true }), ""},
		{"-p 1 --follow-forks=false", set("MANAGE_PREPROC", "1"), plain, ""},
		{"-p 1 -m=false", set("MANAGE_PREPROC", "1"), plain, ""},
		{"-M 16,32 -p 1", none, plain, "-M, --monitor-size: blocks of all sizes have stacks"},
		{"-T -p 1", none, plain, "-T, --disable-timestamps: "},
		{"-L -p 1", none, plain, "-L, --listen: "},
		{"-i file", none, plain, "rtrace postproc -i FILE"},
		{"--preload libx.so -p 1", none, plain, "--preload: "},
		{"--audit libx.so -p 1", none, plain, "-a, --audit: "},
	} {
		var c config
		err := c.parse(strings.Fields(test.args), surroundings(test.env))
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, %v: %v, want %s", test.args, test.env, err, test.err)
			}
			continue
		}
		var got parsed
		if got.of(&c); err != nil || got != test.want {
			t.Errorf("%s, %v: %v\n got %+v\nwant %+v", test.args, test.env, err, got, test.want)
		}
	}
}

// TestUnheededVariables checks that a warning names each variable that has no effect here,
// except with -q.
func TestUnheededVariables(t *testing.T) {
	env := map[string]string{
		"SP_RTRACE_DISABLE_TIMESTAMPS": "1", "SP_RTRACE_MONITOR_SIZE": "16",
		"SP_RTRACE_READY": "1", "SP_RTRACE_START_DIR": "/", "SP_RTRACE_ENABLE_ARGUMENTS": "1", "SP_RTRACE_DISABLE_TIMESTAMP": "0",
	}
	for _, quiet := range []string{"", "-q"} {
		var out, errOut bytes.Buffer
		args := slices.DeleteFunc([]string{quiet, "-p", "2147483647", "-o", t.TempDir()}, func(a string) bool { return a == "" })
		code := run(context.Background(), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}, args, surroundings(env))
		if code == cli.OK {
			t.Error("a process that does not exist is traced")
		}
		for name := range maps.Keys(env) {
			warned := strings.Contains(errOut.String(), name+" is ignored: ")
			heeded := name == "SP_RTRACE_READY" || name == "SP_RTRACE_START_DIR" || name == "SP_RTRACE_ENABLE_ARGUMENTS" || name == "SP_RTRACE_DISABLE_TIMESTAMP"
			if warned != (quiet == "" && !heeded) {
				t.Errorf("%q: warnings about %s\n%s", quiet, name, errOut.String())
			}
		}
	}
}

// TestExecute checks that a command after -x is traced from its start with -s, and not at
// all without it.
func TestExecute(t *testing.T) {
	testutil.NeedBPF(t)
	path := testutil.Build(t, "launch", "-static")
	for name, test := range map[string]struct {
		flags  []string
		traces int
	}{"start": {[]string{"-s"}, 1}, "off": {nil, 0}} {
		l := &launching{t: t, dir: t.TempDir()}
		cmd := command(t, slices.Concat([]string{"--format", "jsonl", "--output-dir", "."}, test.flags, []string{"-x", path})...)
		cmd.Dir = l.dir
		l.Child = testutil.Start(t, cmd)
		l.ends(0)
		all, err := filepath.Glob(filepath.Join(l.dir, "rtrace-raw-*-0.jsonl"))
		if err != nil || len(all) != test.traces {
			t.Errorf("%s: traces %v, %v\n%s", name, all, err, l.Stderr())
		}
		if test.traces == 1 {
			equalCalls(t, load(t, all[0]), l.Report(), mostOfLibc)
		} else {
			l.says("tracing is off")
		}
	}
}
