package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/decoder"
	"rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/linux/dotnet"
	"rtrace-bpf/internal/linux/proc"
	recorder "rtrace-bpf/internal/recording/dotnet"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// managedProgram is a .NET program that answers requests.
type managedProgram struct {
	pid    int
	folder string

	mu       sync.Mutex
	answered sync.Cond // answers has grown, or closed is set; of mu
	answers  int
	closed   bool
	each     func(answers int) // is called with each part of its output; may be nil
}

// unanswered is how many requests the program may have to answer. It reads its input faster
// than it answers, and would otherwise keep gigabytes of requests on a busy machine.
const unanswered = 100

// Write counts the answers that the program prints, one per line.
func (p *managedProgram) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers += bytes.Count(text, []byte("\n"))
	p.answered.Broadcast()
	if p.each != nil {
		p.each(p.answers)
	}
	return len(text), nil
}

func (p *managedProgram) watch(each func(answers int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.each = each
}

// dotnetProgram starts a .NET 10 program from a package and keeps it busy until the end of
// the test. RTRACE_DOTNET names an installed program to use instead.
func dotnetProgram(t *testing.T) *managedProgram {
	t.Helper()
	testutil.Extra(t, ".NET")
	program := os.Getenv("RTRACE_DOTNET")
	folder := t.TempDir()
	if program == "" {
		program = fetch(t, folder)
	}
	cmd := exec.Command(program, "server", "start")
	cmd.Env = []string{"DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1", "HOME=" + folder, "TMPDIR=" + folder, "DOTNET_BUNDLE_EXTRACT_BASE_DIR=" + folder}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &managedProgram{folder: folder}
	p.answered.L = &p.mu
	cmd.Stdout = p
	child := testutil.Start(t, cmd)
	pid := child.PID
	p.pid = pid
	stat, err := proc.ReadStat(pid)
	if err != nil {
		t.Fatal(err)
	}
	testutil.WaitFile(t, filepath.Join(folder, fmt.Sprintf("dotnet-diagnostic-%d-%d-socket", pid, stat.Start)), child)
	c, err := dotnet.Find(pid)
	if err != nil {
		t.Fatal(err)
	}
	info, err := c.ProcessInfo(t.Context())
	for tries := 0; errors.Is(err, dotnet.ErrNoServer) && tries < 100000; tries++ {
		info, err = c.ProcessInfo(t.Context()) // the socket is there before the runtime listens on it
	}
	if err != nil || !strings.HasPrefix(info.Version, "10.") || info.PID != uint64(pid) {
		t.Fatalf("%+v, %v", info, err)
	}
	var feeding sync.WaitGroup
	feeding.Go(func() { // each request makes it allocate
		for id := 1; p.takes(id); id++ {
			if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"ping"}`+"\n", id); err != nil {
				return
			}
		}
	})
	t.Cleanup(func() {
		p.close()
		in.Close()
		feeding.Wait()
	})
	return p
}

// takes waits until the program may get its request number id. It returns false after
// close.
func (p *managedProgram) takes(id int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.closed && id-p.answers > unanswered {
		p.answered.Wait()
	}
	return !p.closed
}

// close ends the requests.
func (p *managedProgram) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.answered.Broadcast()
}

// work is the number of answers for which the program allocates megabytes.
const work = 2000

// trace records the program with the command while it works, and returns standard error.
func (p *managedProgram) trace(t *testing.T, args ...string) (errOut string) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	first := -1 // the number of answers when the recording began
	p.watch(func(answers int) {
		if first >= 0 && answers-first >= work {
			interrupt()
		} else if _, err := os.Stat(ready); first < 0 && err == nil {
			first = answers
		}
	})
	defer p.watch(nil)
	var text bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: &text}
	code := run(ctx, s, append([]string{"-p", fmt.Sprint(p.pid), "--ready-file", ready}, args...), settings{})
	// Events may be lost on a busy machine; these tests do not depend on them.
	if lost := code == cli.Incomplete && strings.Contains(text.String(), "events were lost (ring full "); code != cli.OK && !lost {
		t.Fatalf("%v: exit code %d, %s", args, code, text.String())
	}
	return text.String()
}

// TestDotnetLive records the events of the runtime alone.
func TestDotnetLive(t *testing.T) {
	p := dotnetProgram(t)
	path := filepath.Join(p.folder, "live.nettrace")
	errOut := p.trace(t, "--dotnet", "-o", path)
	f, err := decoder.OpenFile(path, decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	kinds := map[trace.Kind]int{}
	var r trace.Record
	for err = f.ReadRecord(&r); err == nil; err = f.ReadRecord(&r) {
		kinds[r.Kind]++
	}
	if err != io.EOF || kinds[trace.KindFunction] < 500 || kinds[trace.KindCall] == 0 || kinds[trace.KindEnd] != 1 {
		t.Errorf("%v, %v: %s", kinds, err, errOut)
	}
}

func monotonic(t *testing.T) int64 {
	t.Helper()
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		t.Fatal(err)
	}
	return at.Nano()
}

// TestDotnetLiveNative records events of the runtime and native calls together. The trace
// has them in order, with times between the clock readings before and after it, and the
// events also name compiled code in native stacks.
func TestDotnetLiveNative(t *testing.T) {
	testutil.NeedBPF(t)
	p := dotnetProgram(t)
	path := filepath.Join(p.folder, "both.nettrace")
	before := monotonic(t)
	errOut := p.trace(t, "--dotnet", "--native", "-o", path)
	after := monotonic(t)
	if !strings.Contains(errOut, "of the runtime: ") || strings.Contains(errOut, "clock of the runtime") {
		t.Error(errOut)
	}
	records := load(t, path)
	managed, native, _ := checkBoth(t, records, p.pid)
	if managed == 0 || native == 0 {
		t.Fatalf("%d managed and %d native calls: %s", managed, native, errOut)
	}
	var functions spans
	threads := map[int32]int{} // 1: native calls, 2: managed, 3: both
	for i := range records {
		r := records[i]
		if r.Time != 0 && (r.Time < before || r.Time > after) {
			t.Fatalf("record %d, a %v, is of %d, not between %d and %d", i, r.Kind, r.Time, before, after)
		}
		switch {
		case r.Kind == trace.KindFunction:
			functions = append(functions, r.Function)
		case r.Kind == trace.KindCall && r.Call.Resource >= recorder.FirstResource:
			threads[r.TID] |= 2
		case r.Kind == trace.KindCall:
			threads[r.TID] |= 1
		}
	}
	if len(functions) < 500 {
		t.Errorf("%d methods: %s", len(functions), errOut)
	}
	both := 0
	for _, what := range threads {
		if what == 3 {
			both++
		}
	}
	if both == 0 {
		t.Errorf("no thread has calls of both kinds: %v", threads)
	}
	if named, _ := functions.inStacks(records); named == 0 {
		t.Error("no native stack leads through a method that the runtime describes")
	}
}

// spans are functions in which addresses are looked up.
type spans []trace.Function

// inStacks returns how many native stacks contain one of the functions, and the names of
// the functions found.
func (s spans) inStacks(records []*trace.Record) (stacks int, names map[string]bool) {
	names = map[string]bool{}
	known := map[uint64]string{} // by frame, because most frames repeat
	for i := range records {
		r := records[i]
		if r.Kind != trace.KindCall || r.Call.Resource >= recorder.FirstResource {
			continue
		}
		found := false
		for _, frame := range r.Call.Stack.Frames {
			name, looked := known[frame]
			if !looked {
				name = s.name(frame)
				known[frame] = name
			}
			if name != "" {
				found, names[name] = true, true
			}
		}
		if found {
			stacks++
		}
	}
	return stacks, names
}

// TestDotnetLivePerfMap checks that compiled code in native stacks has the names of the
// runtime's perf map after that map is removed: in nettrace, and in the side file of
// sprtrace.
func TestDotnetLivePerfMap(t *testing.T) {
	testutil.NeedBPF(t)
	for _, format := range []string{"nettrace", "sprtrace"} {
		t.Run(format, func(t *testing.T) {
			// Each format needs a new process: one that has compiled everything need not
			// call malloc.
			p := dotnetProgram(t)
			perfMap := fmt.Sprintf("/tmp/perf-%d.map", p.pid)
			path := filepath.Join(p.folder, "native."+format)
			errOut := p.trace(t, "--dotnet-perf-map", "--format", format, "-o", path)
			lines, err := os.ReadFile(perfMap)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(perfMap); err != nil {
				t.Fatal(err)
			}
			var functions spans
			records := load(t, path)
			for i := range records {
				if r := records[i]; r.Kind == trace.KindFunction {
					functions = append(functions, r.Function)
				}
			}
			stacks, names := functions.inStacks(records)
			if stacks == 0 || len(names) == 0 {
				t.Fatalf("%d stacks lead through %d of %d functions: %s", stacks, len(names), len(functions), errOut)
			}
			for name := range names {
				if !bytes.Contains(lines, []byte(" "+name+"\n")) {
					t.Errorf("%q is not in the perf map", name)
				}
			}
			t.Logf("%d stacks, %d names", stacks, len(names))
		})
	}
}

// fetch downloads the program, 59 MB, through npm, which keeps it. It skips the test if
// npm's registry cannot be reached, and fails it on other errors.
func fetch(t *testing.T, folder string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	npm := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, "npm", append(args, "--silent", "--fetch-retries=0")...)
		cmd.Dir = folder
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	const what = "@azure/mcp-linux-x64@2.0.5"
	if _, err := npm("view", what, "version"); err != nil {
		t.Skipf("SKIPPED-NETWORK: npm does not reach its registry (%v): RTRACE_DOTNET may name a program of .NET 10", err)
	}
	name, err := npm("pack", "--prefer-offline", what)
	if err != nil {
		t.Fatalf("npm pack %s: %v", what, err)
	}
	unpack := exec.CommandContext(ctx, "tar", "xzf", name, "package/dist/azmcp")
	unpack.Dir = folder
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("unpack %s: %v: %s", name, err, out)
	}
	return filepath.Join(folder, "package/dist/azmcp")
}

// TestDotnetLiveNativeSymbols checks that other readers of nettrace find the name of each
// compiled function in native stacks, even if the runtime keeps its code in a mapped memfd.
func TestDotnetLiveNativeSymbols(t *testing.T) {
	testutil.NeedBPF(t)
	p := dotnetProgram(t)
	path := filepath.Join(p.folder, "both.nettrace")
	p.trace(t, "--dotnet", "--native", "-o", path)
	var functions spans
	frames := map[uint64]bool{}
	memory := 0 // mappings of memfds
	for _, r := range load(t, path) {
		switch {
		case r.Kind == trace.KindFunction:
			functions = append(functions, r.Function)
		case r.Kind == trace.KindMapping && strings.HasPrefix(r.Mapping.Path, "/memfd:"):
			memory++
		case r.Kind == trace.KindCall && r.Call.Resource < recorder.FirstResource:
			for _, f := range r.Call.Stack.Frames {
				frames[f] = true
			}
		}
	}
	symbols := systemSymbols(t, path)
	compiled, named := 0, 0
	for frame := range frames {
		for _, f := range functions {
			if f.Start < frame && frame <= f.End {
				compiled++
				if symbols.name(frame) == f.Name {
					named++
				}
				break
			}
		}
	}
	if compiled == 0 || named != compiled {
		t.Errorf("%d of %d compiled frames have their names for other readers, with %d mappings of memfds", named, compiled, memory)
	}
}

// systemSymbols returns the functions that a nettrace stream names for other readers.
func systemSymbols(t *testing.T, path string) (list spans) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s, err := nettrace.NewScanner(f, nettrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for {
		e, err := s.Next()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Meta == nil || e.Meta.Provider != wire.ProviderSystem || e.Meta.EventID != wire.SystemSymbol {
			continue
		}
		var numbers [4]uint64 // ID, ID of the mapping, start, end
		b := e.Payload
		for i := range numbers {
			n := 0
			numbers[i], n = binary.Uvarint(b)
			b = b[n:]
		}
		list = append(list, trace.Function{Name: string(b[2:]), Start: numbers[2], End: numbers[3]})
	}
}

// name returns the name of the function that contains a return address, or an empty string.
func (s spans) name(frame uint64) string {
	for _, f := range s {
		if f.Start < frame && frame <= f.End {
			return f.Name
		}
	}
	return ""
}
