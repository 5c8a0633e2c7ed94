package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// accesses returns the uses of files that a trace contains, in the order in which they
// began, as lines that the program fileuse prints.
func accesses(t *testing.T, path string, user int32) []string {
	t.Helper()
	type use struct{ begin, end string }
	var all []*use
	open := map[int32][]*use{} // that have not ended, by thread
	for _, r := range load(t, path) {
		if r.Kind != trace.KindOpaque || r.Opaque.ID != wire.FileFunctionEntry && r.Opaque.ID != wire.FileFunctionExit {
			continue
		}
		if r.PID != user {
			t.Errorf("process %d uses a file, want %d", r.PID, user)
			continue
		}
		b := r.Opaque.Data[8:] // after process and thread
		if r.Opaque.ID == wire.FileFunctionExit {
			if len(open[r.TID]) == 0 {
				t.Fatalf("thread %d ends the use of a file that it has not begun", r.TID)
			}
			open[r.TID][0].end = fmt.Sprint(int64(binary.LittleEndian.Uint64(b[1:])))
			open[r.TID] = open[r.TID][1:]
			continue
		}
		fd, event := int32(binary.LittleEndian.Uint32(b)), binary.LittleEndian.Uint32(b[4:])
		file, rest, _ := strings.Cut(string(b[8:]), "\x00")
		u := &use{begin: fmt.Sprintf("use %d %d %d %s", r.TID, fd, event, file)}
		arguments, rest := binary.LittleEndian.Uint32([]byte(rest)), rest[4:]
		switch arguments {
		case 1:
			u.begin += " <" + strings.TrimSuffix(rest, "\x00") + ">"
		case 2:
			n := []byte(rest)
			u.begin += fmt.Sprintf(" <%d %d %d %d>", binary.LittleEndian.Uint32(n), binary.LittleEndian.Uint32(n[4:]),
				int64(binary.LittleEndian.Uint64(n[8:])), int64(binary.LittleEndian.Uint64(n[16:])))
		}
		all = append(all, u)
		open[r.TID] = append(open[r.TID], u)
	}
	var lines []string
	for _, u := range all {
		begin, more, found := strings.Cut(u.begin, " <")
		if more = strings.TrimSuffix(more, ">"); found {
			more = " " + more
		}
		lines = append(lines, begin+" "+u.end+more)
	}
	return lines
}

// TestSwapFiles checks that a trace with --swap-files contains each use that another
// process makes of a file while the traced process has it open, however it was opened and
// closed, and no use of other files.
func TestSwapFiles(t *testing.T) {
	testutil.EachWidth(t, swapFiles)
}

func swapFiles(t *testing.T, build testutil.Builder) {
	child := waitingOf(t, build, "fileuse", t.TempDir())
	r := start(t, child, "--format", "swap", "--swap-files")
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	r.says("lost: 0")
	compareAccesses(t, child, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID)))
}

func compareAccesses(t *testing.T, child *testutil.Child, path string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(string(child.Output())), "\n")
	var user int32
	if n, _ := fmt.Sscanf(lines[0], "user %d", &user); n != 1 {
		t.Fatalf("the program prints %q", lines[0])
	}
	want, got := lines[1:], accesses(t, path, user)
	if len(want) < 100 || len(want) != len(got) {
		t.Errorf("%d uses of files, the program made %d", len(got), len(want))
	}
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("use %d of a file is\n%s, want\n%s", i, got[i], want[i])
		}
	}
}

// TestSwapFilesInPIDNamespace checks this in a PID namespace, where processes have other
// numbers than in the kernel.
func TestSwapFilesInPIDNamespace(t *testing.T) {
	testutil.NeedBPF(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	out, ready := filepath.Join(dir, "trace.swap"), filepath.Join(dir, "ready")
	const script = `"$0" "$4" & p=$!; "$1" -q -p $p -o "$2" --ready-file "$3" --format swap --swap-files; s=$?; wait $p; exit $s`
	cmd := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "sh", "-c", script, testutil.Build(t, "fileuse"), exe, out, ready, t.TempDir())
	cmd.Env = append(os.Environ(), asCommand+"=1")
	child := testutil.Start(t, cmd)
	child.Ready()
	testutil.WaitFile(t, ready, child)
	child.Go()
	child.Succeed()
	compareAccesses(t, child, out)
}

// TestSwapWithoutFiles checks that a trace without --swap-files contains no uses of files.
func TestSwapWithoutFiles(t *testing.T) {
	child := waiting(t, "fileuse", t.TempDir())
	r := start(t, child, "--format", "swap")
	child.Go()
	child.Succeed()
	r.ends(cli.OK)
	ids := []uint32{wire.FileFunctionEntry, wire.FileFunctionExit}
	for _, rec := range load(t, filepath.Join(r.dir, fmt.Sprintf("rtrace-raw-%d-0.swap", child.PID))) {
		if rec.Kind == trace.KindOpaque && slices.Contains(ids, rec.Opaque.ID) {
			t.Fatalf("message %#x", rec.Opaque.ID)
		}
	}
}
