package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rtrace-bpf/internal/cli"
)

const (
	// extremesVariable names the traces that the child of TestExtremes reads.
	extremesVariable = "RTRACE_EXTREMES"
	// extremesMemory is the writable memory in bytes that a subcommand may map for a trace
	// of a few lines.
	extremesMemory = 384 << 20
	// extremesOutput is the number of bytes that it may print or write to a file.
	extremesOutput = 24 << 20
	// Many points take half of the time of all subcommands, in each format the same. So all formats
	// but one have few.
	manyPoints, fewPoints = "100000", "1000"
)

// extremeCommands are the subcommands that read traces, with flags. FILE is the
// trace, OUT a file that does not exist.
const extremeCommands = `
info FILE
info --json FILE
report -o OUT.html FILE
leaks FILE
leaks --json --by size FILE
leaks --blocks --min-age 1s FILE
leaks --to 292y FILE
leaks --from 1s --to 2s FILE
top FILE
top --json --by thread FILE
top --by size --sort peak FILE
diff FILE FILE
diff --from 1s FILE
diff --json --from 1 --to 2 FILE
timeline FILE
timeline -x time FILE
timeline -x time --points ` + manyPoints + ` --csv FILE
timeline -x time -f svg FILE
timeline --lifetimes FILE
timeline --lifetimes -x time FILE
timeline --by thread -x time FILE
timeline --by function FILE
timeline -t -a -l -c -s -f text FILE
timeline -t -a -l -c -s -x event -f text FILE
timeline -t -a -l -c -s -g -o OUT FILE
timeline -t -a -l -c -s --data OUT -f text FILE
timeline -t -a -l -c -s --legacy -f text FILE
timeline -t -a -l -c -s --legacy --data OUT -o OUT2 FILE
timeline -a -S 1 -f text FILE
timeline -a -S 9223372036854 -f text FILE
timeline -a -f text --filter-time +0-+1 FILE
timeline -l -f text -L 1 --filter-size 1- FILE
heapmap -o OUT.svg FILE
heapmap --at peak -o OUT.html FILE
heapmap --base 0xfffffffffffff000 -o OUT.svg FILE
heapmap --base 0x1000 --space 18446744073709551615 -o OUT.html FILE
calltree FILE
calltree --type count FILE
calltree --type topmost FILE
calltree -l --limit 0 FILE
graphs overview -o OUT FILE
graphs function -o OUT prog FILE
postproc FILE
postproc -l -c -s size FILE
postproc --legacy -l -c -s count FILE
postproc -f sprtrace -b 1 FILE
resolve FILE
resolve -f jsonl FILE
convert -f sprtrace FILE
convert -f sprtrace --rtrace-dialect document FILE
convert -f text FILE
convert -f jsonl FILE
convert -f mtrc FILE
convert -f mtrc --mtrc-legacy --mtrc-words 4 FILE
convert -f swap FILE
convert -f swap --swap-dialect kernel --swap-time formula FILE
convert -f nettrace FILE
convert -f nettrace --nettrace-version 6 --nettrace-view alloctick FILE
convert -f pprof FILE
convert -f folded FILE
convert -f speedscope FILE
convert -f jsonl --from 1s --to 10s FILE
stacks FILE
stacks --json FILE
dump FILE
dump --records FILE
pagemap -d FILE
pagemap -p -s -T 3 FILE
allocmap FILE
allocmap -p 1 FILE FILE
allocmap --legacy -b 0 FILE
allocmap -b 0 -t ffffffffffffffff -l 0 -h ffffffffffffffff -k 18446744073709551615 FILE
allocmap --animate FILE FILE
from-function prog FILE
alloc-sizes FILE
alloc-sizes FILE 18014398509481983
stats FILE FILE
sort FILE 5
mprof -v FILE
mprof --json FILE
mprof -g - -l FILE
mprof --bins 18446744073709551615 FILE
mptrace -v -s FILE
mptrace -H OUT FILE
mptrace -S OUT FILE
mptrace --legacy FILE
swap-heap FILE
swap-heap --every 1ms FILE
swap-heap --every 1 --tsv FILE
swap-libraries FILE
swap-persistent --stack --freed FILE
swap-maps FILE
swap-calls FILE
`

// TestExtremes runs each subcommand on small traces whose times, sizes, addresses and counts
// are at their limits, in each format. None may use much memory, print much, or crash.
func TestExtremes(t *testing.T) {
	if name := os.Getenv(extremesVariable); name != "" {
		extremesChild(t, name)
		return
	}
	traces := extremeTraces(t)
	for _, name := range slices.Sorted(maps.Keys(traces)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "trace.jsonl")
			const areas = "00001000-00002000 rw-p 00000000 00:00 0 [heap]\nfffffffff0000000-fffffffffffff000 rw-p 00000000 00:00 0 \n"
			self, err := os.Executable()
			if err := errors.Join(err, os.WriteFile(file, traces[name], 0o600), os.WriteFile(filepath.Join(dir, "maps"), []byte(areas), 0o600)); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(self, "-test.run=^TestExtremes$", "-test.count=1")
			cmd.Env = append(os.Environ(), extremesVariable+"="+file)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, lastLines(out, 40))
			}
			if t.Failed() {
				t.Logf("the trace:\n%s", traces[name])
			}
		})
	}
}

// lastLines returns the last command that began and the lines after it, cut to n lines.
func lastLines(out []byte, n int) string {
	if at := bytes.LastIndex(out, []byte("\nrtrace ")); at >= 0 {
		out = out[at:]
	}
	lines := strings.SplitN(string(out), "\n", n+1)
	return strings.Join(lines[:min(n, len(lines))], "\n")
}

// extremesChild runs the commands on a trace and on its conversions to other formats.
func extremesChild(t *testing.T, file string) {
	limitMemory(t)
	dir := filepath.Dir(file)
	files := []string{file}
	for _, format := range []string{"sprtrace", "text", "mtrc", "swap", "nettrace"} {
		out := filepath.Join(dir, "trace."+format)
		if code := extreme(t, "convert", "-f", format, "-o", out, file); code == cli.OK || code == cli.Incomplete {
			files = append(files, out)
		}
	}
	extreme(t, "replay", "--runs", "1", "--malloc", "glibc", file)
	for _, file := range files {
		for line := range strings.Lines(strings.TrimSpace(extremeCommands)) {
			scratch, err := os.MkdirTemp(dir, "out")
			if err != nil {
				t.Fatal(err)
			}
			args := strings.Fields(line)
			for n, arg := range args {
				if arg == "FILE" {
					args[n] = file
				}
				args[n] = strings.Replace(args[n], "OUT", filepath.Join(scratch, "out"), 1)
				if arg == manyPoints && file != files[0] {
					args[n] = fewPoints
				}
			}
			extreme(t, args...)
			if err := os.RemoveAll(scratch); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// limitMemory makes the process fail when it maps more memory, or writes a longer file, than
// a subcommand may.
func limitMemory(t *testing.T) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	var data uint64
	for line := range strings.Lines(string(status)) {
		if _, err := fmt.Sscanf(line, "VmData: %d kB", &data); err == nil {
			break
		}
	}
	if data == 0 {
		t.Fatal("VmData is not known")
	}
	limit := data<<10 + extremesMemory
	debug.SetMemoryLimit(extremesMemory / 2)
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: extremesOutput, Max: extremesOutput}); err != nil {
		t.Fatal(err)
	}
}

// tooMuch counts the bytes that are written to it, and refuses more than a subcommand may
// write.
type tooMuch struct{ n int }

func (m *tooMuch) Write(b []byte) (int, error) {
	if m.n += len(b); m.n > extremesOutput {
		return 0, fmt.Errorf("more than %d bytes of output", extremesOutput)
	}
	return len(b), nil
}

// extreme runs a subcommand and checks that it ends properly.
func extreme(t *testing.T, args ...string) cli.ExitCode {
	t.Helper()
	fmt.Println("rtrace", strings.Join(args, " "))
	var out tooMuch
	var errOut bytes.Buffer
	s := cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errOut}
	code := run(context.Background(), s, append([]string{"rtrace"}, args...))
	if code < cli.OK || code > cli.Incomplete || out.n > extremesOutput || errOut.Len() > 1<<16 {
		t.Errorf("%v: exit code %d, %d bytes of output, %.500q", args, code, out.n, errOut.String())
	}
	if text := errOut.String(); code == cli.Failed && !strings.HasPrefix(strings.TrimPrefix(text, "rtrace "), args[0]+": ") {
		t.Errorf("%v: exit code %d, %.500q", args, code, errOut.String())
	}
	return code
}
