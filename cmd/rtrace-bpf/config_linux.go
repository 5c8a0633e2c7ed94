package main

import (
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"rtrace-bpf/cmd/internal/flags"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/selection"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/tracer"
)

const name = "rtrace-bpf"

// config is the command line.
type config struct {
	flags flags.Groups

	command     []string // to be started; nil for none
	selection   selection.Selection
	wait        waitConfig
	output      string
	format      string
	dialect     string
	mtrc        mtrcConfig
	swap        swapConfig
	activity    activityConfig
	named       functionsConfig
	follow      followConfig
	machine     machineConfig
	nettrace    nettraceConfig
	postproc    postprocConfig
	dotnet      dotnetConfig
	duration    time.Duration
	maxRate     flags.Count
	maxSize     flags.Size
	readyFile   string
	startPaused bool
	ask         askConfig
	side        string
	strict      bool
	dryRun      bool
	quiet       bool
	verbose     int
	unbuffered  bool
	version     bool

	depth        int
	backtraceAll bool
	args         bool
	unwind       string
	verifyUnwind int
	minSize      flags.Size
	noLive       bool
	ringSize     flags.Size
	buffer       string
	mechanism    string
	state        string
	sites        string
	sideband     string
	bounded      bool
	heapGrowth   bool
	heapInfo     bool
	operators    string
	allocators   allocatorConfig
	modules      moduleConfig
	originals    originalConfig
	attach       attachments
	pagemap      bool
	warnings     []string // about the environment
}

// swapConfig is how SWAP is written.
type swapConfig struct {
	dialect  string
	time     string
	noStacks bool
}

// mtrcConfig is how MTRC is written.
type mtrcConfig struct {
	names   string
	callers string
	legacy  bool
	words   int
}

func (c *config) declare() {
	f := c.flags.Group("What is traced")
	f.VarP((*flags.PIDs)(&c.selection.PIDs), "pid", "p", "trace the running process `PID`, all its threads; may be repeated, or be several with commas")
	f.StringArrayVar(&c.selection.Comms, "comm", nil, "trace all processes whose command name is `NAME` now; may be repeated")
	flags.OfferCommands(f, "comm")
	c.wait.declare(f)
	f.StringArrayVar(&c.selection.Cgroups, "cgroup", nil, "trace all processes that are now in the cgroup (v2) `PATH` or below it; PATH may be below the place where cgroups are mounted; may be repeated")
	f.StringArrayVar(&c.selection.Users, "uid", nil, "trace all processes that now have the effective user `USER`, a name or number; may be repeated")
	c.follow.declare(f)
	f.Var((*flags.Duration)(&c.duration), "duration", "end `TIME`, as 10s or 5m, after the probes are in and the output is open (default: at Ctrl-C or the end of the processes)")
	f.Var(&c.minSize, "min-size", "leave out blocks smaller than `BYTES` (suffixes K, M, G), and their frees")
	c.modules.declare(f)
	f.BoolVar(&c.args, "args", false, "record the arguments of calls of allocators, too: size, nmemb, alignment, ptr; those of the other modules are always there")
	c.allocators.declare(f)
	c.dotnet.declare(f)

	f = c.flags.Group("Stacks")
	f.VarP(flags.Number(&c.depth, tracer.DefaultDepth, 0, tracer.MaxDepth), "depth", "b", "record at most `N` frames of a stack, 0 for none")
	f.BoolVarP(&c.backtraceAll, "backtrace-all", "A", false, "record the stack of frees, too")
	f.Var(flags.Word(&c.unwind, tracer.UnwindAuto.String(), slices.Sorted(maps.Keys(tracer.Unwinds()))...), "unwind", "find callers by `WAY`: auto (unwind tables, and frame pointers where code has none), eh (unwind tables alone), fp (frame pointers alone), helper (the kernel's bpf_get_stack, for comparison) or none")
	f.Var(flags.Number(&c.verifyUnwind, 0, 0, flags.Unbounded), "verify-unwind", "check every `N`th stack: copy it raw, unwind it again with all that the files say, and tell the differences")

	f = c.flags.Group("Output")
	f.StringVarP(&c.output, "output", "o", "", "write to the new file `PATH`, or into that directory, which is made if PATH ends with / and is missing; - is standard output, and a FIFO is waited for until it has a reader (default: SP_RTRACE_OUTPUT_DIR, else the current directory)")
	f.Var(flags.Word(&c.format, "", encoder.FormatNames()...), "format", "write `FORMAT`: "+encoder.Names()+" (default "+encoder.Default+", with --dotnet nettrace)")
	f.Var(flags.Word(&c.dialect, "wire", "wire", "document"), "rtrace-dialect", "write sprtrace in the `DIALECT` wire, as the real tools do, or document, to the letter of the protocol text")
	f.Var(flags.Word(&c.mtrc.names, "on", "on", "off"), "mtrc-names", "name the function, source file and line of each call in mtrc: `WHETHER` on or off")
	f.Var(flags.Word(&c.mtrc.callers, "program", resolve.Policies()...), "mtrc-callers", "take them from the innermost frame of `WHAT`: program (outside the C and C++ libraries, where there is one) or innermost (of any file)")
	f.BoolVar(&c.mtrc.legacy, "mtrc-legacy", false, "write mtrc for the unmodified 64-bit mptrace: addresses and sizes in 31 bits")
	f.IntVar(&c.mtrc.words, "mtrc-words", 0, "write the header of mtrc in words of `N` bytes, 4 for a 32-bit mptrace, or 8 (default: as many as pointers of the process have)")
	f.Var(flags.Word(&c.swap.dialect, "document", "document", "kernel"), "swap-dialect", "write swap in the `DIALECT` document, with command lines, or kernel, with task names of 15 bytes as devices sent")
	f.Var(flags.Word(&c.swap.time, "seconds-first", "seconds-first", "formula"), "swap-time", "write the times of swap in the `ORDER` seconds-first, as all public writers do, or formula, to the letter of the newer protocol text")
	f.BoolVar(&c.swap.noStacks, "swap-no-stacks", false, "leave the private messages with whole stacks out of swap; its standard ones hold the caller alone")
	c.activity.declare(f)
	c.named.declare(f)
	c.machine.declare(f)
	c.nettrace.declare(f)
	c.postproc.declare(f)
	f.BoolVarP(&c.unbuffered, "no-buffer", "B", false, "write each event within some milliseconds instead of within a second; costs rtrace-bpf some 2% of a processor")
	c.attach.declare(f)
	f.BoolVar(&c.pagemap, "pagemap", false, "attach what the kernel says of each page of the process at the end of the trace, for rtrace pagemap; as the module pagemap of -e")
	f.StringVar(&c.side, "side", "", "with -o -, write what the format cannot hold to `FILE`")
	f.BoolVarP(&c.quiet, "quiet", "q", false, "print errors only: no progress, no summary")
	f.CountVarP(&c.verbose, "verbose", "v", "say what is done; twice: also where each probe sits and why")

	f = c.flags.Group("Recording")
	f.Var(&c.ringSize, "ring-size", "buffer `BYTES` of events per CPU and process, a power of two (default 8M, less with many CPUs or processes)")
	f.Var(flags.Word(&c.buffer, "ring", "ring", "perf"), "buffer", "move events through `KIND`: ring (BPF ring buffers) or perf (perf event buffers)")
	f.BoolVar(&c.heapGrowth, "heap-growth", false, "record the memory that the allocator gets from the system, too; mtrc always has it")
	f.BoolVar(&c.heapInfo, "heap-info", false, "end the trace with the state of the heap, as mallinfo tells it; what cannot be known without symbols of the C library is 0, and named in a line and in the side file")
	f.Var(flags.Word(&c.operators, "all", "all", "new", "none"), "operators", "name the C++ operators of `WHICH` kind, new, all or none, instead of the malloc and free that they call; each name costs a probe more on every such call, a delete two in most programs")
	f.Var(&c.maxRate, "max-rate", "record at most `N` calls a second of a process (suffixes k, M), on average: when there are more, the probes are taken out for a second or longer, and the trace says when")
	f.Var(&c.maxSize, "max-size", "end the recording of a process before its trace, with what belongs to it, has more than `BYTES` (suffixes K, M, G); of mtrc in a file it limits what is kept until it is written")
	f.BoolVar(&c.strict, "strict", false, "end with exit status 1 at the first lost event")
	f.BoolVar(&c.noLive, "no-live", false, "do not follow live blocks: less memory, no live figures in the summary")
	f.BoolVar(&c.startPaused, "start-paused", false, "begin with tracing switched off")
	f.BoolVar(&c.dryRun, "dry-run", false, "print what would be probed, where and how, and end")
	f.StringVar(&c.readyFile, "ready-file", "", "create the file `PATH` once the probes are in, those of all processes")

	c.ask.declare(c.flags.Group("Another rtrace-bpf"))

	f = c.flags.Group("General")
	f.BoolVar(&c.version, "version", false, "print the version and end")
	c.flags.Help(f, "h")

	f = c.flags.Hidden()
	f.Var(flags.Word(&c.mechanism, "auto", "auto", "multi", "perf"), "mechanism", "")
	f.Var(flags.Word(&c.state, "auto", "auto", "task", "hash"), "state", "")
	f.Var(flags.Word(&c.sites, "auto", "auto", "cookie", "address"), "sites", "")
	f.Var(flags.Word(&c.sideband, "auto", "auto", "task", "machine"), "sideband", "")
	f.BoolVar(&c.bounded, "bounded", false, "")
	c.originals.declare(&c.flags)
	c.follow.declareOriginals(&c.flags, f)
}

func (c *config) parse(args []string, env settings) error {
	c.declare()
	rest, command, err := c.flags.ParseCommand(name, args)
	if err != nil {
		return err
	}
	c.command = command
	if c.format == "" {
		c.format = encoder.Default
		if c.dotnet.on {
			c.format = "nettrace"
		}
	}
	switch {
	case c.version, c.modules.list:
		return nil
	case c.ask.any():
		return c.ask.take(rest)
	}
	if c.warnings, err = c.environment(&env); err != nil {
		return err
	}
	if err := c.originals.check(c); err != nil {
		return err
	}
	if err := c.wait.check(c); err != nil {
		return err
	}
	switch {
	case len(rest) > 0:
		return unexpected(rest[0])
	case c.command != nil:
		if err := c.checkCommand(); err != nil {
			return err
		}
	case c.selection.Empty():
		return errors.New("nothing is selected; name a process with -p PID, all of a kind with --comm, --cgroup or --uid, or a command to start after --")
	}
	switch {
	case c.startPaused && c.dotnet.on && !c.dotnet.native:
		return errors.New("--start-paused goes with tracing of native calls: what a runtime of .NET tells is not switched")
	case c.strict && c.maxRate > 0:
		return errors.New("--max-rate loses events on purpose, and --strict forbids that: name one of them")
	case c.side != "" && !c.toStdout():
		return errors.New("--side goes with -o -; other outputs name their side file themselves")
	}
	if err := c.checkValues(); err != nil {
		return err
	}
	if _, err := encoder.New(c.format, io.Discard, c.encoding()); err != nil {
		return err
	}
	if err := errors.Join(c.dotnet.check(c), c.machine.check(c), c.postproc.check(c), c.attach.check(c), c.checkHeapInfo(), c.checkPagemap(), c.follow.check(c)); err != nil {
		return err
	}
	_, err = c.options()
	return err
}

// encoding returns the choices of the output format.
func (c *config) encoding() encoder.Options {
	return encoder.Options{
		SprtraceDialect: c.dialect, BacktraceAll: c.backtraceAll, MTRCLegacy: c.mtrc.legacy, MTRCWords: c.mtrc.words,
		SwapDialect: c.swap.dialect, SwapTime: c.swap.time, SwapNoStacks: c.swap.noStacks,
		Nettrace: c.nettrace.encoding(),
	}
}

// isMTRC says whether the trace is written for mptrace.
func (c *config) isMTRC() bool { return c.format == "mtrc" }

// isText says whether the trace is written to be read by people.
func (c *config) isText() bool { return c.format == "text" || c.format == "jsonl" }

// names says whether the format holds the names of callers and there are frames
// to name.
func (c *config) names() bool {
	return c.isMTRC() && c.mtrc.names == "on" && c.depth > 0 && c.unwind != tracer.UnwindNone.String()
}

func (c *config) toStdout() bool { return c.output == "-" || c.output == "stdout" }

// anyPID stands for the process that is not known yet.
const anyPID = 1

// options returns the tracer's options but for the process.
func (c *config) options() (tracer.Options, error) {
	o := tracer.Options{
		PID: anyPID, Depth: c.depth, BacktraceAll: c.backtraceAll, MinSize: uint64(c.minSize),
		Args: c.args, NoLive: c.noLive, MaxRate: uint64(c.maxRate), RingSize: int(c.ringSize), Origin: name + " " + cli.BuildVersion(),
		VerifyUnwind: c.verifyUnwind, Bounded: c.bounded, HeapGrowth: c.heapGrowth || c.isMTRC(),
	}
	c.allocators.set(&o)
	o.Buffer = map[string]tracer.Buffer{"ring": tracer.BufferRing, "perf": tracer.BufferPerf}[c.buffer]
	o.Mechanism = map[string]tracer.Mechanism{
		"auto": tracer.MechanismAuto, "multi": tracer.MechanismMulti, "perf": tracer.MechanismPerf,
	}[c.mechanism]
	o.State = map[string]tracer.State{"auto": tracer.StateAuto, "task": tracer.StateTask, "hash": tracer.StateHash}[c.state]
	o.Sites = map[string]tracer.Sites{
		"auto": tracer.SitesAuto, "cookie": tracer.SitesCookie, "address": tracer.SitesAddress,
	}[c.sites]
	o.Sideband = map[string]tracer.Sideband{
		"auto": tracer.SidebandAuto, "task": tracer.SidebandTask, "machine": tracer.SidebandMachine,
	}[c.sideband]
	o.Unwind, o.Operators = tracer.Unwinds()[c.unwind], tracer.OperatorChoices()[c.operators]
	var errs [4]error
	o.Activity, errs[0] = c.activity.options(c)
	o.Functions, errs[1] = c.named.options(c)
	errs[2] = c.modules.set(&o)
	if errs[2] == nil {
		errs[3] = o.Check()
	}
	return o, errors.Join(errs[:]...)
}

// page is the help.
func (c *config) page() *cli.Page {
	var fresh config
	fresh.declare()
	return &cli.Page{
		Name:     name,
		Command:  true,
		Summary:  "trace the allocations of running processes, or of a command from its start",
		Synopsis: []string{"-p PID [flags]", "[flags] -- COMMAND [ARGUMENT...]", "[--comm NAME] [--cgroup PATH] [--uid USER] [flags]", "--wait --comm NAME [flags]", "--dotnet -p PID [flags]", "--toggle PID", "--mark PID NAME"},
		Intro: "Records every allocation and free of a running process with its stack, until Ctrl-C, the end of the process or --duration. " +
			"The process is not restarted. The trace goes to rtrace-raw-PID-N in the current directory; read it with rtrace.",
		About: "Attaches to the allocators of a running process (the C library's, jemalloc, tcmalloc, mimalloc and others, " +
			"linked, preloaded or static in the program), without a restart, and records every " +
			"allocation and free with its stack until Ctrl-C, the end of the process or --duration. " +
			"The trace goes to rtrace-raw-PID-N in the current directory; read it with rtrace. " +
			"What the format cannot hold goes to the same name with .side. A second Ctrl-C leaves out what is still " +
			"in the buffers, a third one does not let the files be completed.\n\n" +
			"Several processes are traced side by side, each into a trace of its own. --comm, --cgroup and --uid narrow " +
			"each other: a process must fit one of the names, one of the cgroups and one of the users that are given. " +
			"Those of -p are traced besides. Processes that start later are not, and neither is rtrace-bpf itself; --follow-forks adds those that the traced ones make from then on, and ends when all of them have ended. " +
			"One that cannot be traced is told, and the others go on.\n\n" +
			"A command behind -- is started, and held until the probes are in, so that what constructors allocate is in the trace, " +
			"those of its libraries, too. It runs as the user, in the directory and with the streams and limits of rtrace-bpf: under sudo as root. " +
			"A program that it becomes is traced on if that uses the same allocator's file; its children with --follow-forks alone. When it has ended, its exit status is that of rtrace-bpf, " +
			"which has waited for it also where the trace ended before. Ctrl-C is the command's: the trace goes on as long as that does. " +
			"SIGTERM to rtrace-bpf ends the trace and is passed on to the command. What cannot be traced is not run.\n\n" +
			"With --wait the next process that executes a program under the name of --comm is traced, whoever starts it, in the same way: " +
			"a script has its own name, a running process and the names of threads do not count. Of several that come at once one is traced; the others run on. " +
			"It is held in the kernel for a moment, and then by a process that traces it as a debugger does, rtrace-holder, which lets it go whenever rtrace-bpf ends or is stopped. " +
			"Where that comes too late, as on a machine with one processor, the process is stopped by a signal in front of its first instruction, and it is said: " +
			"its parent can see that, and a shell with job control takes it for stopped. What cannot be traced runs on. In a pid namespace, processes outside of it do not count.\n\n" +
			"SIGUSR1 to rtrace-bpf, or --toggle from elsewhere, switches tracing off and on again, for all its processes: " +
			"while it is off no probes are in them. Each time it begins a new file of each process; what was " +
			"allocated before is unknown to that one. SIGUSR2 or --mark sets a mark in the trace, by which rtrace leaks " +
			"--from and --to choose a part of it. A trace in the file of -o is the only one.\n\n" +
			"Files, and a directory that is made for them, are for their owner alone, who under sudo is the user who called it.\n\n" +
			"MTRC is written when the recording has ended: until then the records are in a temporary file without a " +
			"name, in the folder of the output, and are lost if rtrace-bpf is killed. A stream (-o -) is written at " +
			"once, with the names of functions and without lines.\n\n" +
			"With --dotnet the runtime of a process of .NET is asked for its events instead, over its diagnostics socket: " +
			"which objects were allocated, of which it tells one in about 100 KB, with the managed stack. Nettrace is written " +
			"as it comes; other formats are what rtrace makes of it. That takes no right but to be the user of the process. " +
			"After the end of the recording, at most 512 MiB of events are read, which is exit status 3 if there are more. " +
			"With --native its allocator is traced as well, and both are one trace on one clock, in nettrace or jsonl, where the runtime's methods " +
			"name compiled code in native stacks, too. Since the runtime tells late, that is written when the recording has ended: until then " +
			"it is in temporary files without names, as for MTRC.\n\n" +
			"Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; where a kernel wants more, the error says what.",
		Flags: fresh.flags.Usage(),
		Common: []cli.ListRow{
			{Name: "pid", Text: "trace this process; several with commas between"},
			{Name: "comm", Text: "trace all processes of this name"},
			{Name: "follow-forks", Text: "trace what they start, too"},
			{Name: "duration", Text: "end after this time, as 10s or 5m"},
			{Name: "min-size", Text: "leave out smaller blocks"},
			{Name: "output", Text: "write to this new file or directory"},
			{Name: "format", Text: "sprtrace (default), text, jsonl, mtrc, swap, nettrace"},
			{Name: "max-rate", Text: "pause when a process makes more calls a second"},
			{Name: "max-size", Text: "end before a trace is larger"},
			{Name: "dry-run", Text: "print what would be probed, and end"},
			{Name: "quiet", Text: "print errors only"},
		},
		Examples: []cli.Example{
			{Does: "trace until Ctrl-C, then print what is still live, and where it was allocated", Command: "sudo rtrace-bpf -p 4711; rtrace leaks -r rtrace-raw-4711-0"},
			{Does: "trace a command from its first call to its end", Command: "sudo rtrace-bpf -o app.trace -- ./app --flag"},
			{Does: "trace a shell script, and each program that it starts", Command: "sudo rtrace-bpf --follow-forks -o traces/ -- ./script.sh"},
			{Does: "trace the workers of a web server for a minute, a file each", Command: "sudo rtrace-bpf --comm nginx --uid www-data --duration 1m -o /var/tmp"},
			{Does: "trace the next sqlite3 that anybody starts, from its first call on", Command: "sudo rtrace-bpf --wait --comm sqlite3 -o sqlite3.trace"},
			{Does: "watch the calls of ten seconds", Command: "sudo rtrace-bpf -p 4711 --duration 10s --format text -o -"},
			{Does: "trace one phase of a program: switch tracing on before it and off behind it", Command: "sudo rtrace-bpf -p 4711 --start-paused & sudo rtrace-bpf --toggle 4711; sleep 10; sudo rtrace-bpf --toggle 4711"},
			{Does: "see what is left of what was allocated since a mark", Command: "sudo rtrace-bpf --mark 4711 loaded; sleep 60; sudo kill -INT $(pgrep -f 'rtrace-bpf -p 4711'); rtrace leaks --from loaded rtrace-raw-4711-0"},
			{Does: "see which objects a program of .NET allocates", Command: "rtrace-bpf --dotnet -p 4711 --duration 1m -o app.nettrace; rtrace stacks app.nettrace"},
			{Does: "see native and managed allocations of a program of .NET in one trace", Command: "sudo rtrace-bpf --dotnet --native -p 4711 --duration 1m -o app.nettrace; rtrace stacks app.nettrace"},
			{Does: "show each event as mptrace does while the program runs", Command: "sudo rtrace-bpf -p 4711 -q --format mtrc -o - | rtrace mptrace -v -s -"},
		},
		Exit: []cli.ExitRow{
			{Code: cli.OK, Text: "done; Ctrl-C, the end of the process, --duration and --max-size are how a trace ends"},
			{Code: cli.Failed, Text: "failed, for one process at least; no process could be traced; or events were lost under --strict"},
			{Code: cli.Usage, Text: "the command line is wrong"},
			{Code: cli.Incomplete, Text: "done, but events are missing, of which the summary says how many and why; the recording was paused for --max-rate; or only some of the processes could be traced, or followed ones ran untraced"},
			{Code: ownFailure, Text: "with a command: rtrace-bpf failed, or its command line is wrong; 1 is a lost event under --strict, and what is missing changes nothing else"},
			{Code: notExecutable, Text: "with a command: it cannot be executed"},
			{Code: notFound, Text: "with a command: it is not there"},
			{Code: 128, Text: "with a command, and n more: signal n ended it; any other code is its own"},
		},
	}
}
