package naming

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"rtrace-bpf/internal/linux/proc"
	"rtrace-bpf/internal/symbol/resolve"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// program prints the line of a call in main and the address that the call returns to.
const program = `#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) void *here(void) { return __builtin_return_address(0); }
int main(void)
{
	char c;
	printf("%d %p\n", __LINE__, here());
	fflush(stdout);
	if (write(3, "ready\n", 6) != 6 || read(4, &c, 1) != 1)
		return 98;
	return 0;
}`

// ended is a program that has run.
type ended struct {
	path    string
	pid     int32
	root    *Root
	records []trace.Record // of its mappings
	line    uint64         // of the call
	frame   uint64         // where the call returns to
}

// run runs the program to its end.
func run(t *testing.T) *ended {
	t.Helper()
	path := testutil.BuildText(t, program, "-g")
	return end(t, testutil.Spawn(t, path), path)
}

// end waits for the end of a program whose file has a path in its own root. That root was
// opened while the program ran.
func end(t *testing.T, child *testutil.Child, path string) *ended {
	t.Helper()
	child.Ready()
	e := &ended{path: path, pid: int32(child.PID), root: OpenRoot(child.PID)}
	t.Cleanup(e.root.Close)
	maps, err := proc.Maps(child.PID)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range maps {
		if m.Perms&proc.Exec != 0 && m.File() {
			e.records = append(e.records, trace.Record{Kind: trace.KindMapping, PID: e.pid, Mapping: trace.Mapping{
				Start: m.Start, End: m.End, Offset: m.Offset, Base: m.Start - m.Offset, Path: m.Path,
			}})
		}
	}
	child.Go()
	child.Succeed()
	if _, err := fmt.Sscanf(string(child.Output()), "%d %v", &e.line, &e.frame); err != nil {
		t.Fatalf("%q: %v", child.Output(), err)
	}
	return e
}

// call is a call with a frame in main.
func (e *ended) call() trace.Record {
	return trace.Record{Kind: trace.KindCall, PID: e.pid, Call: trace.Call{Op: trace.OpAlloc, Stack: trace.Stack{Frames: []uint64{e.frame}}}}
}

// list reads records from a slice.
type list struct{ records []trace.Record }

func (l *list) ReadRecord(r *trace.Record) error {
	if len(l.records) == 0 {
		return io.EOF
	}
	*r, l.records = l.records[0], l.records[1:]
	return nil
}

// kept keeps copies of the records that are written, and what else was called.
type kept struct {
	records []*trace.Record
	calls   []string
}

func (k *kept) WriteRecord(r *trace.Record) error {
	k.records = append(k.records, r.Clone())
	return nil
}

func (k *kept) Flush() error {
	k.calls = append(k.calls, "flush")
	return errFlush
}

func (k *kept) Close() error {
	k.calls = append(k.calls, "close")
	return errClose
}

// Lock and Unlock make a kept a sync.Locker.
func (k *kept) Lock()   { k.calls = append(k.calls, "lock") }
func (k *kept) Unlock() { k.calls = append(k.calls, "unlock") }

var errFlush, errClose = errors.New("flush"), errors.New("close")

// A frame of a process that has ended has its function and its line.
func TestFrames(t *testing.T) {
	e := run(t)
	f := NewFrames(int(e.pid), e.root)
	for i := range e.records {
		f.Observe(&e.records[i])
	}
	if got, want := f.Text(e.frame), fmt.Sprintf(`^main at \S+\.c:%d$`, e.line); !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A program whose file is in a file system that only it has mounted has names after its end.
func TestFramesOfOtherMounts(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("SKIPPED-PRIVILEGE: mounting needs root")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "program")
	const script = `mount -t tmpfs none "$1" && cp "$2" "$1/program" && exec "$1/program"`
	cmd := exec.Command("unshare", "--mount", "sh", "-c", script, "sh", dir, testutil.BuildText(t, program, "-g"))
	e := end(t, testutil.Start(t, cmd), path)
	if _, err := os.Stat(path); err == nil {
		t.Fatal("the test sees the file")
	}
	f := NewFrames(int(e.pid), e.root)
	for i := range e.records {
		f.Observe(&e.records[i])
	}
	if got, want := f.Text(e.frame), fmt.Sprintf(`^main at \S+\.c:%d$`, e.line); !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Without the directory of the process, its files are found where this program sees them.
func TestFramesWithoutRoot(t *testing.T) {
	e := run(t)
	f := NewFrames(int(e.pid), new(Root))
	for i := range e.records {
		f.Observe(&e.records[i])
	}
	if got, want := f.Text(e.frame), fmt.Sprintf(`^main at \S+\.c:%d$`, e.line); !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Each call gets the function, the file and the line that made it.
func TestCallers(t *testing.T) {
	e := run(t)
	from := Callers(&list{append(slices.Clone(e.records), e.call())}, e.root, resolve.Program)
	var r trace.Record
	for r.Kind != trace.KindCall {
		if err := from.ReadRecord(&r); err != nil {
			t.Fatal(err)
		}
	}
	if c := r.Call.Caller; c.Function != "main" || filepath.Base(c.File) != "text.c" || c.Line != e.line {
		t.Errorf("%+v, want main at line %d of text.c", c, e.line)
	}
	if err := from.ReadRecord(&r); err != io.EOF {
		t.Errorf("at the end: %v", err)
	}
}

// While recording, each call is written with its function alone. The record that the caller
// owns is as it was.
func TestOnline(t *testing.T) {
	e := run(t)
	to := new(kept)
	o := NewOnline(to, e.root, resolve.Program)
	call := e.call()
	for _, r := range append(slices.Clone(e.records), call) {
		if err := o.WriteRecord(&r); err != nil {
			t.Fatal(err)
		}
		if r.Call.Caller != (trace.Caller{}) {
			t.Errorf("the record was changed: %+v", r.Call.Caller)
		}
	}
	if len(to.records) != len(e.records)+1 {
		t.Fatalf("%d records, want %d", len(to.records), len(e.records)+1)
	}
	for i := range e.records {
		if to.records[i].Mapping != e.records[i].Mapping {
			t.Errorf("mapping %d is %+v", i, to.records[i].Mapping)
		}
	}
	if c := to.records[len(e.records)].Call.Caller; c != (trace.Caller{Function: "main"}) {
		t.Errorf("%+v, want main alone", c)
	}
	if err := o.Flush(); err != errFlush {
		t.Errorf("flush: %v", err)
	}
	if err := o.Close(); err != errClose {
		t.Errorf("close: %v", err)
	}
}

// Names stop when their room is used up, and when there is no time.
func TestFunctions(t *testing.T) {
	e := run(t)
	hurry := make(chan struct{})
	for name, test := range map[string]struct {
		room int
		want []string
	}{
		"any number": {-1, []string{"main", "main", "main"}},
		"none":       {0, []string{"", "", ""}},
		"a byte":     {1, []string{"main", "", ""}},
		"two names":  {nameCost + len("main") + 1, []string{"main", "main", ""}},
	} {
		f := NewFunctions(e.root, test.room, hurry)
		for i := range e.records {
			f.Observe(&e.records[i])
		}
		var got []string
		for range test.want {
			got = append(got, f.Function(e.pid, e.frame))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	f := NewFunctions(e.root, -1, hurry)
	for i := range e.records {
		f.Observe(&e.records[i])
	}
	close(hurry)
	if got := f.Function(e.pid, e.frame); got != "" {
		t.Errorf("in a hurry: %q", got)
	}
}

// A writer is closed while it holds its turn, and its error is returned.
func TestClosing(t *testing.T) {
	k := new(kept)
	c := Closing{Writer: k, Turn: k}
	if err := c.Close(); err != errClose {
		t.Error(err)
	}
	if want := []string{"lock", "close", "unlock"}; !slices.Equal(k.calls, want) {
		t.Errorf("%q, want %q", k.calls, want)
	}
}
