package main

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/decoder"
	decoderswap "rtrace-bpf/decoder/swap"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// functionTrace is what a trace contains about the functions that --function and --fbi
// select.
type functionTrace struct {
	calls  map[int][]string    // by thread, in the form that the program prints
	values map[uint32][][]byte // by variable
	pcs    map[string]uint64
	caller map[string]uint64 // of the last call
}

// readFunctions reads the calls and values of selected functions from a trace.
func readFunctions(t *testing.T, path string) *functionTrace {
	t.Helper()
	in, err := decoder.OpenFile(path, decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	records, err := trace.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	side := swapSide(t, in)
	var parser decoderswap.Parser
	var fields decoderswap.Fields
	all := &functionTrace{map[int][]string{}, map[uint32][][]byte{}, map[string]uint64{}, map[string]uint64{}}
	var last int64
	for _, r := range records {
		if r.Kind != trace.KindOpaque {
			continue
		}
		switch r.Opaque.ID {
		case wire.FBI:
			id, size := binary.LittleEndian.Uint32(r.Opaque.Data), binary.LittleEndian.Uint32(r.Opaque.Data[4:])
			if int(size) != len(r.Opaque.Data)-8 {
				t.Fatalf("a value of %d bytes in a message of %d", size, len(r.Opaque.Data))
			}
			all.values[id] = append(all.values[id], r.Opaque.Data[8:])
			continue
		case wire.FunctionEntry, wire.FunctionExit:
		default:
			continue
		}
		if r.Time < last {
			t.Errorf("message %#x is %d ns before the one before it", r.Opaque.ID, last-r.Time)
		}
		last = r.Time
		e, ok := parser.Event(&decoderswap.Message{ID: r.Opaque.ID, Data: r.Opaque.Data}, &fields, nil)
		name := side.Functions[e.PC]
		if !ok || name == "" {
			t.Fatalf("the function %#x of message %#x has no name (%v)", e.PC, r.Opaque.ID, side.Functions)
		}
		line := strings.TrimSpace(fmt.Sprintf("enter %s %s", name, e.Args))
		if r.Opaque.ID == wire.FunctionExit {
			line = strings.TrimSpace(fmt.Sprintf("leave %s %s", name, e.Result))
		}
		all.pcs[name], all.caller[name] = e.PC, e.Caller
		all.calls[int(r.TID)] = append(all.calls[int(r.TID)], line)
	}
	return all
}

// written returns the calls that the program printed, by thread.
func written(t *testing.T, output []byte) map[int][]string {
	t.Helper()
	all := map[int][]string{}
	for line := range strings.Lines(string(output)) {
		tid, text, ok := strings.Cut(strings.TrimSpace(line), " ")
		var n int
		if _, err := fmt.Sscan(tid, &n); err != nil || !ok {
			t.Fatalf("the program prints %q", line)
		}
		all[n] = append(all[n], text)
	}
	return all
}

// sameCalls compares the calls in a trace with those that the program printed.
func sameCalls(t *testing.T, got, want map[int][]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("calls of %d threads, want %d", len(got), len(want))
	}
	for tid, list := range want {
		if slices.Equal(got[tid], list) {
			continue
		}
		for i := range max(len(got[tid]), len(list)) {
			if i >= len(got[tid]) || i >= len(list) || got[tid][i] != list[i] {
				t.Fatalf("thread %d: %d lines, want %d; line %d is\n%q, want\n%q", tid, len(got[tid]), len(list), i,
					slices.Concat(got[tid], []string{"nothing"})[min(i, len(got[tid]))], slices.Concat(list, []string{"nothing"})[min(i, len(list))])
			}
		}
	}
}

var namedFunctions = []string{
	"--function=:add(dxcb)x", "--function=functions:many(dddddddsd)d", "--function=:texts(sss)s", "--function=:nothing(p)v",
	"--function=:again(d)x", "--function=:first(d)d", "--function=:second(d)d", "--function=:through(pd)d", "--function=:leaper(d)d",
}

// TestFunctionTracing compares the traced calls of selected functions with those that the
// program prints: of all threads, with arguments and results, nested, and with tail calls.
// A call that longjmp leaves has no end.
func TestFunctionTracing(t *testing.T) {
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		for name, way := range map[string][]string{
			"auto": nil, "perf": {"--mechanism=perf"}, "addresses": {"--mechanism=perf", "--sites=address"},
		} {
			t.Run(name, func(t *testing.T) { namedCalls(t, build, way) })
		}
	})
}

func namedCalls(t *testing.T, build testutil.Builder, way []string) {
	const threads, rounds = 3, 30
	child := waitingOf(t, build, "functions", fmt.Sprint(threads), fmt.Sprint(rounds))
	r := start(t, child, slices.Concat([]string{"--format", "swap"}, way, namedFunctions)...)
	child.Go()
	child.Succeed()
	r.ends(cli.Incomplete) // the ends of calls that longjmp left are missing
	r.says(fmt.Sprintf("missed return %d", threads*rounds*4))
	all := readFunctions(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID)))
	want := written(t, child.Output())
	if len(want) != threads || len(want[slices.Sorted(maps.Keys(want))[0]]) < rounds*50 {
		t.Fatalf("the program wrote %d threads", len(want))
	}
	sameCalls(t, all.calls, want)
}

// TestNamedValues checks the values that --fbi reads at an instruction: registers, memory,
// and memory that a pointer in memory points to. A value that cannot be read has no bytes.
func TestNamedValues(t *testing.T) {
	testutil.EachWidth(t, namedValues)
}

func namedValues(t *testing.T, build testutil.Builder) {
	const rounds = 25
	child := waitingOf(t, build, "functions", "1", fmt.Sprint(rounds))
	pair, next := "rdi", "8"
	if runtime.GOARCH == "arm64" {
		pair = "x0"
	}
	if exe, err := elf.Open(fmt.Sprintf("/proc/%d/exe", child.PID)); err != nil {
		t.Fatal(err)
	} else if err := exe.Close(); err != nil || exe.Class == elf.ELFCLASS32 {
		pair, next = "[esp+4]", "4"
	}
	r := start(t, child, "--format", "swap", "--fbi=:peek@1=["+pair+"]/4", "--fbi=:peek@2=[["+pair+"+"+next+"]]/4",
		"--fbi=:peek+0x0@3=[[["+pair+"+"+next+"]+"+next+"]]/4", "--fbi=:peek@4=["+pair+"]/500")
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	r.says("lost: 0")
	all := readFunctions(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID)))
	for id := range uint32(4) {
		if len(all.values[id+1]) != rounds {
			t.Fatalf("variable %d has %d values, want %d", id+1, len(all.values[id+1]), rounds)
		}
	}
	for i := range uint32(rounds) {
		number := func(n uint32) []byte { return binary.LittleEndian.AppendUint32(nil, n) }
		if !bytes.Equal(all.values[1][i], number(i)) || !bytes.Equal(all.values[2][i], number(i+7)) {
			t.Fatalf("round %d: %x and %x", i, all.values[1][i], all.values[2][i])
		}
		if len(all.values[3][i]) != 0 {
			t.Fatalf("round %d: %x is at address 0", i, all.values[3][i])
		}
		if v := all.values[4][i]; len(v) != 500 || !bytes.Equal(v[:4], number(i)) {
			t.Fatalf("round %d: %d bytes, want 500", i, len(v))
		}
	}
}

// TestFunctionTracingOfCxx checks traced C++ functions that exceptions leave, and a function
// of the C library. Probes at their return instructions record the ends of the C++
// functions.
func TestFunctionTracingOfCxx(t *testing.T) {
	testutil.EachWidth(t, func(t *testing.T, build testutil.Builder) {
		const rounds = 40
		child := waitingOf(t, build, "functions_cxx", fmt.Sprint(rounds))
		r := start(t, child, "--format", "swap", "--function=:traced::inner(d)d", "--function=:traced::outer(int)(d)d",
			"--function=:traced::twice(long)(x)x", "--function=libc:labs(x)x")
		child.Go()
		child.Succeed()
		r.ends(cli.Incomplete)
		r.says(fmt.Sprintf("missed return %d", rounds/2*2))
		all := readFunctions(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID)))
		want := written(t, child.Output())
		for _, list := range want {
			for i := range list { // the name that the option gives the function
				list[i] = strings.Replace(list[i], "traced::outer ", "traced::outer(int) ", 1)
			}
		}
		sameCalls(t, all.calls, want)
	})
}

// TestFunctionTracingOfLaterLibrary checks functions of a library that is mapped while
// recording. If the option has its path, the trace has every call. If it has its name, the
// trace begins when the tracer notices the library, and the command reports that.
func TestFunctionTracingOfLaterLibrary(t *testing.T) {
	plug := testutil.Build(t, "plug", "-shared", "-fPIC")
	const rounds = 20
	t.Run("path", func(t *testing.T) {
		child := waitingOf(t, testutil.Build, "dl", plug, fmt.Sprint(rounds))
		r := start(t, child, "--format", "swap", "--function", plug+":plug_leak(x)p")
		child.Go()
		child.Succeed()
		r.ends(cli.OK)
		checkLeakCalls(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID)), child.PID, 0, rounds)
	})
	t.Run("name", func(t *testing.T) {
		child := waitingOf(t, testutil.Build, "dl", plug, fmt.Sprint(rounds), "wait")
		dir := t.TempDir()
		ready := filepath.Join(dir, "ready")
		read, write := pipe(t)
		defer read.Close()
		cmd := command(t, "-p", fmt.Sprint(child.PID), "-o", dir, "--ready-file", ready, "--format", "swap", "--function", "plug:plug_leak(x)p")
		cmd.Stderr = write
		r := startIn(t, cmd, dir, ready)
		write.Close()
		child.Go()
		child.Ready() // the first call is made, and the library is still mapped
		var output strings.Builder
		lines := bufio.NewScanner(read)
		for lines.Scan() {
			fmt.Fprintln(&output, lines.Text())
			if strings.Contains(lines.Text(), "was mapped while recording: calls before now are missing") {
				child.Go() // the probes are in
			}
		}
		child.Succeed()
		r.ends(cli.Incomplete)
		if !strings.Contains(output.String(), "probed late 1") {
			t.Errorf("the late library is not among the losses:\n%s", output.String())
		}
		trace := filepath.Join(dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID))
		first := 1
		if len(readFunctions(t, trace).calls[child.PID]) == 2*rounds {
			first = 0 // the program was interrupted between mapping the library and its call
		}
		checkLeakCalls(t, trace, child.PID, first, rounds)
	})
	t.Run("never", func(t *testing.T) {
		child := waitingOf(t, testutil.Build, "dl", plug, "3")
		r := start(t, child, "--format", "swap", "--function", "other:plug_leak(x)p")
		child.Go()
		child.Succeed()
		r.ends(cli.OK)
		r.says("has no file other mapped")
		checkLeakCalls(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID)), child.PID, 0, 0)
	})
}

// checkLeakCalls checks that a trace has the calls from first to last, without last, of
// plug_leak by the program dl.
func checkLeakCalls(t *testing.T, trace string, pid, first, last int) {
	t.Helper()
	got := readFunctions(t, trace).calls[pid]
	if len(got) != 2*(last-first) {
		t.Fatalf("%d messages, want %d: %q", len(got), 2*(last-first), got)
	}
	for i := first; i < last; i++ {
		at := 2 * (i - first)
		if want := fmt.Sprintf("enter plug_leak x:%d", 100+i); got[at] != want || !strings.HasPrefix(got[at+1], "leave plug_leak p:0x") {
			t.Fatalf("call %d is %q, %q; want %q", i, got[at], got[at+1], want)
		}
	}
}

// TestFunctionTracingRefused checks that impossible selections are refused in one line,
// before the process has any probe.
func TestFunctionTracingRefused(t *testing.T) {
	for line, want := range map[string]string{
		"--function :main()d":                            "go with --format swap",
		"--format jsonl --fbi :main@1=rax/8":             "go with --format swap",
		"--format swap --dotnet --function :main()d":     "not with --dotnet",
		"--format swap --function main()d":               "LIB: is missing before the function",
		"--format swap --function :main":                 "letters of arguments are missing",
		"--format swap --function :main(q)d":             "unknown letter 'q' of an argument (known: b c d x p s f w)",
		"--format swap --function :main(D)d":             "arrays (D) cannot be read",
		"--format swap --function :main(d)w":             "probes cannot read floating-point registers",
		"--format swap --function :main(d)dd":            "a function has one result",
		"--format swap --function :main(sssss)d":         "more than 4 texts",
		"--format swap --fbi :main@1=[rdi/4":             "a value is a register",
		"--format swap --fbi :main=[rdi]/4":              "no @ID=EXPR",
		"--format swap --fbi :main@1=[rdi]":              "no /SIZE",
		"--format swap --fbi :main@1=[rdi]/0":            "is not a number from 1 to 512",
		"--format swap --fbi :main@x=[rdi]/4":            "is not one from 0 to 4294967295",
		"--format swap --fbi :main+0xzz@1=[rdi]/4":       "is not a hexadecimal number",
		"--format swap --fbi :main@1=[[rdi+8]+nonsense]": "no /SIZE",
	} {
		res := finish(t, command(t, append([]string{"-p", "1"}, strings.Fields(line)...)...))
		if res.code != int(cli.Usage) || !strings.Contains(res.stderr, want) {
			t.Errorf("%s: exit code %d, %q; want %d and %q", line, res.code, res.stderr, cli.Usage, want)
		}
	}
	child := waitingOf(t, testutil.Build, "functions_cxx", "3")
	code := testutil.CodeOf(t, child.PID)
	for line, want := range map[string]string{
		"--function=:nowhere(d)d":               "has no function of that name",
		"--function=libc:nowhere(d)d":           "has no function of that name",
		"--function=/no/such/lib.so:f(d)d":      "has no such file mapped, and it cannot be opened",
		"--function=:traced::inner(w)d":         "floating point numbers are in vector registers, which probes cannot read",
		"--function=:traced::twice(d)d":         "has 2 functions of that name: name one by its address",
		"--function=:traced::jumps(pd)d":        "a return probe would kill a program that throws an exception through it",
		"--function=libc:memset(pdx)p":          "an ifunc",
		"--function=:+0x11(d)d":                 " at 0x11",
		"--fbi=:traced::inner+0x1@1=rbogus/4":   "unknown register \"rbogus\"",
		"--fbi=:traced::inner+0x1@1=r8/16":      "a register has 8 bytes, not 16",
		"--fbi=:traced::inner+0x1000000@1=r8/8": "has no code at",
	} {
		if runtime.GOARCH == "arm64" && strings.Contains(line, "fbi") {
			continue // the registers have other names
		}
		res := finish(t, command(t, "-p", fmt.Sprint(child.PID), "--format", "swap", "-o", t.TempDir(), "--duration", "1ms", line))
		if res.code != int(cli.Failed) || !strings.Contains(res.stderr, want) || strings.Count(strings.TrimSpace(res.stderr), "\n") > 1 {
			t.Errorf("%s: exit code %d, %q; want %d and %q", line, res.code, res.stderr, cli.Failed, want)
		}
	}
	code.Original(t)
	child.Go()
	child.Succeed()
}
