package main

import (
	"slices"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
)

// recordPage is the help of record.
func recordPage() *cli.Page {
	var fresh config
	fresh.declare()
	page := &cli.Page{
		Name:     name + " record",
		Command:  true,
		Summary:  "record the allocations of running processes, or of a command from its start",
		Synopsis: []string{"-p PID [flags]", "[flags] -- COMMAND [ARGUMENT...]", "--wait --comm NAME [flags]", "[--comm NAME] [--cgroup PATH] [--uid USER] [flags]"},
		Intro: "Records every allocation and free of a running process with its stack, until Ctrl-C, the end of the process or --duration. " +
			"The process is not restarted. The trace goes to rtrace-raw-PID-N in the current directory; read it with rtrace.",
		About: recordAbout,
		Flags: fresh.flags.Usage(),
		Common: []cli.ListRow{
			{Name: "pid", Text: "trace this process; separate several with commas"},
			{Name: "comm", Text: "trace all processes with this name"},
			{Name: "follow-forks", Text: "also trace the processes that they start"},
			{Name: "duration", Text: "end after this time, such as 10s or 5m"},
			{Name: "min-size", Text: "leave out smaller blocks"},
			{Name: "output", Text: "write to this new file or directory"},
			{Name: "format", Text: "sprtrace (default), text, jsonl, mtrc, swap, nettrace"},
			{Name: "max-rate", Text: "pause when a process makes more calls a second"},
			{Name: "budget", Text: "record in windows that cost at most this, as 1%; gives estimates"},
			{Name: "max-size", Text: "end before a trace is larger"},
			{Name: "quiet", Text: "print errors only"},
		},
		Examples: []cli.Example{
			{Does: "trace until Ctrl-C, then print what is still live, and where it was allocated", Command: "sudo rtrace-bpf -p 4711; rtrace leaks -r rtrace-raw-4711-0"},
			{Does: "trace a command from its first call to its end", Command: "sudo rtrace-bpf -o app.trace -- ./app --flag"},
			{Does: "trace a program whose name is that of a verb", Command: "sudo rtrace-bpf -- plan --flag"},
			{Does: "trace a shell script, and each program that it starts", Command: "sudo rtrace-bpf --follow-forks -o traces/ -- ./script.sh"},
			{Does: "trace the workers of a web server for a minute, each into its own file", Command: "sudo rtrace-bpf --comm nginx --uid www-data --duration 1m -o /var/tmp"},
			{Does: "trace the next sqlite3 that anybody starts, from its first call", Command: "sudo rtrace-bpf --wait --comm sqlite3 -o sqlite3.trace"},
			{Does: "write a profile of the live blocks every 30 seconds, and compare two of them", Command: "sudo rtrace-bpf -p 4711 --snapshot 30s -o app.trace; go tool pprof -top -diff_base app.trace.snapshot-0001.pb.gz app.trace.snapshot-0004.pb.gz"},
			{Does: "watch the calls of ten seconds", Command: "sudo rtrace-bpf -p 4711 --duration 10s --format text -o -"},
		},
		Exit: []cli.ExitRow{
			{Code: cli.OK, Text: "done; traces normally end with Ctrl-C, the end of the process, --duration or --max-size"},
			{Code: cli.Failed, Text: "at least one recording failed, no process could be traced, or events were lost under --strict"},
			{Code: cli.Usage, Text: "the command line is wrong"},
			{Code: cli.Incomplete, Text: "done, but something is missing: events, which the summary counts with the reasons; events during a pause for --max-rate; processes that could not be traced or that ran untraced; or snapshots that could not be written"},
			{Code: ownFailure, Text: "with a command: rtrace-bpf failed, or its command line is wrong; events lost under --strict give 1, and other missing events do not change the exit status"},
			{Code: notExecutable, Text: "with a command: the command cannot be executed"},
			{Code: notFound, Text: "with a command: the command was not found"},
			{Code: 128, Text: "with a command, plus n: signal n ended the command; any other code is the command's own"},
		},
	}
	for _, t := range recordTopics {
		i := slices.IndexFunc(page.Flags, func(g cli.FlagGroup) bool { return g.Title == t.title })
		page.Flags[i].About, page.Flags[i].Examples = t.about, t.examples
	}
	return page
}

// recordTopics are texts and examples of groups of flags.
var recordTopics = []struct {
	title, about string
	examples     []cli.Example
}{
	{title: "What is traced", about: targetAbout},
	{title: "Modules", about: "A module is a set of functions that allocate and free one kind of resource: memory, file descriptors, mappings, threads and so on. rtrace-bpf modules lists them all.", examples: []cli.Example{
		{Does: "trace memory and file descriptors", Command: "sudo rtrace-bpf -p 4711 -e memory:file"},
		{Does: "see what makes RSS grow, whatever the allocator", Command: "sudo rtrace-bpf -p 4711 -e growth"},
		{Does: "trace the sessions that a library opens and closes", Command: "sudo rtrace-bpf -p 4711 --resource 'session:alloc=session_open(id=ret),free=session_close(id=arg1)'"},
	}},
	{title: "Dotnet", about: dotnetAbout, examples: []cli.Example{
		{Does: "see which objects a .NET program allocates", Command: "rtrace-bpf --dotnet -p 4711 --duration 1m -o app.nettrace; rtrace stacks app.nettrace"},
		{Does: "see native and managed allocations of a .NET program in one trace", Command: "sudo rtrace-bpf --dotnet --native -p 4711 --duration 1m -o app.nettrace; rtrace stacks app.nettrace"},
	}},
	{title: "Output", about: outputAbout},
	{title: "Formats", about: formatsAbout, examples: []cli.Example{
		{Does: "show each event as mptrace does while the program runs", Command: "sudo rtrace-bpf -p 4711 -q --format mtrc -o - | rtrace mptrace -v -s -"},
		{Does: "record messages of Tizen's Dynamic Analyzer, with the state of the machine", Command: "sudo rtrace-bpf -p 4711 --format swap --swap-system 100ms -o app.swap"},
	}},
	{title: "Recording", about: windowsAbout, examples: []cli.Example{
		{Does: "trace one phase of a program: switch tracing on before it and off after it", Command: "sudo rtrace-bpf -p 4711 --start-paused & sudo rtrace-bpf toggle 4711; sleep 10; sudo rtrace-bpf toggle 4711"},
		{Does: "see what is left of the blocks that were allocated since a mark", Command: "sudo rtrace-bpf mark 4711 loaded; sleep 60; sudo kill -INT $(pgrep -f 'rtrace-bpf -p 4711'); rtrace leaks --from loaded rtrace-raw-4711-0"},
	}},
}

// recordAbout is the long description.
const recordAbout = "Attaches to the allocators of a running process, without restarting it: the C library's, jemalloc, tcmalloc, mimalloc and others, " +
	"whether linked, preloaded or static in the program. Records every allocation and free with its stack until Ctrl-C, the end of the process or --duration. " +
	"The trace goes to rtrace-raw-PID-N in the current directory; read it with rtrace. " +
	"Anything that the format cannot represent goes to the same name with .side. " +
	"A second Ctrl-C leaves out events that are still in the buffers. A third one ends rtrace-bpf before the files are complete.\n\n" +
	"The verb may be left out: rtrace-bpf -p PID records. What follows -- is a command, whatever its name is.\n\n" +
	"Needs root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; if a kernel requires more, the error names it."

// targetAbout explains how processes are selected.
const targetAbout = "Several processes are traced at the same time, each into its own trace. --comm, --cgroup and --uid restrict each other: " +
	"a process must match one of the names, one of the cgroups and one of the users, as far as these are given. " +
	"Processes of -p are traced in addition. Processes that start later are not traced, and neither is rtrace-bpf itself. " +
	"--follow-forks adds the processes that the traced ones start from then on, and ends when all of them have ended. " +
	"If a process cannot be traced, rtrace-bpf reports it and continues with the others.\n\n" +
	"A command after -- is started, and held until the probes are attached, so that the trace contains the allocations of constructors, including those of its libraries. " +
	"It runs with the user, directory, streams and limits of rtrace-bpf: under sudo, as root. " +
	"If the command executes another program, tracing continues if that uses the same allocator's file. Its children are traced with --follow-forks only. " +
	"rtrace-bpf waits for the command, even if the trace has ended before, and exits with its exit status. " +
	"Ctrl-C goes to the command, and the trace continues as long as the command runs. " +
	"SIGTERM to rtrace-bpf, or the end of its terminal, ends the trace and sends SIGTERM to the command. A command that cannot be traced is not run.\n\n" +
	"With --wait, rtrace-bpf traces the next process that executes a program under the name of --comm, in the same way, regardless of which process starts it. " +
	"For a script, its own name counts, not that of its interpreter. Running processes and the names of threads do not match. If several processes start at the same time, one is traced, and the others run normally. " +
	"The process is held in the kernel for a moment, and then by rtrace-holder, which traces it as a debugger does and releases it if rtrace-bpf ends or is stopped. " +
	"If that comes too late, as on a machine with one processor, rtrace-bpf stops the process with a signal before its first instruction, and reports it: " +
	"its parent can see that, and a shell with job control considers it stopped. A process that cannot be traced runs on. In a pid namespace, processes outside of it do not match."

// windowsAbout explains how tracing is switched off and on.
const windowsAbout = "SIGUSR1 to rtrace-bpf, or rtrace-bpf toggle PID, switches tracing of all its processes off and on again. " +
	"While tracing is off, the processes have no probes. Each time tracing is switched on, a new file begins for each process; it does not contain blocks that were " +
	"allocated before. SIGUSR2 or rtrace-bpf mark PID NAME sets a mark in the trace; rtrace leaks --from and --to select a part of the trace by its marks. " +
	"If -o names a file, it takes one trace only."

// outputAbout explains who can read the files.
const outputAbout = "Files, and a directory that is created for them, can be read by their owner only. Under sudo, the owner is the user who called it."

// formatsAbout explains formats with rules of their own.
var formatsAbout = "--format selects one of: " + encoder.Names() + ". Each flag below is for one format.\n\n" +
	"MTRC is written when the recording has ended. Until then the records are in a temporary file without a " +
	"name, in the directory of the output, and are lost if rtrace-bpf is killed. A stream (-o -) is written at " +
	"once, with the names of functions and without lines."

// dotnetAbout explains --dotnet.
const dotnetAbout = "With --dotnet, the trace contains events of the .NET runtime, which come through its diagnostics socket: " +
	"the allocated objects, one for about every 100 KB, with the managed stack. Nettrace is written " +
	"as the runtime sends it; for other formats, rtrace-bpf converts it. This needs no right except to be the user of the process. " +
	"After the end of the recording, rtrace-bpf reads at most 512 MiB of events; if there are more, the exit status is 3. " +
	"With --native, the allocator is traced as well. Both are one trace on one clock, in nettrace or jsonl, and the names of the runtime's methods " +
	"are also used for compiled code in native stacks. Because the runtime sends events late, the trace is written when the recording has ended: until then " +
	"it is in temporary files without names, as for MTRC."
