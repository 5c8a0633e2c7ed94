package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/testutil"
)

// A process with another root directory is explained and watched from outside: its files and its
// functions are found.
func TestChroot(t *testing.T) {
	t.Run("explain", func(t *testing.T) {
		root := containerRoot(t, testutil.Build(t, "residence", "-pthread"), "leak", "1")
		child := testutil.Start(t, exec.Command("chroot", root, "/program", "leak", "8"))
		child.Ready()
		d := explained(t, cli.OK, "-p", fmt.Sprint(child.PID))[0]
		if d.Verdicts[0].Topic != explain.AboutLive || d.Heap == nil || len(d.Heap.Arenas) != 1 || !strings.HasSuffix(d.Process.Exe, "/program") {
			t.Errorf("%+v: %+v with the heap %+v", d.Process, d.Verdicts, d.Heap)
		}
		child.Go()
		child.Succeed()
	})
	t.Run("top", func(t *testing.T) {
		root := containerRoot(t, testutil.Build(t, "phases"), "1", "10")
		testutil.NeedBPF(t)
		child := testutil.Start(t, exec.Command("chroot", root, "/program", "1", "10"))
		child.Ready()
		r := startTop(t, "-p", fmt.Sprint(child.PID), "--json", "--interval", "100ms")
		onePhase(t, child)
		r.ends(cli.OK)
		watched(t, r.Output(), child)
	})
}

// onePhase has the program phases go through its only phase.
func onePhase(t *testing.T, child *testutil.Child) {
	t.Helper()
	child.Go()
	child.Ready()
	child.Go()
}

// watched fails the test unless the last line of JSON has what the program phases logged, with the
// names of its functions. child must end by itself.
func watched(t *testing.T, text []byte, child *testutil.Child) {
	t.Helper()
	child.Succeed()
	allocated, freed, live := loggedAmounts(child.Report())
	all := topLines(t, text)
	x := all[len(all)-1]
	if m := x.Resources[0]; m.Allocated != allocated || m.Freed != freed || m.Live != live || allocated.Blocks == 0 {
		t.Errorf("%+v\nwant %v allocated, %v freed, %v live", m, allocated, freed, live)
	}
	for _, row := range x.Rows {
		if !strings.HasPrefix(row.Function, "do_malloc") && row.Function != "main" {
			t.Errorf("a row of %q", row.Text)
		}
	}
}

// top watches a process in a PID namespace, from outside and, with the process's ID there, from
// inside.
func TestTopInNamespace(t *testing.T) {
	testutil.NeedBPF(t)
	program := testutil.Build(t, "phases")
	stdin, end, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer end.Close()
	// The shell keeps the namespace until top has ended in it.
	cmd := exec.Command("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", `"$@" & wait $! && read -r line || true`, "sh", program, "1", "10")
	cmd.Stdin = stdin
	outer := testutil.Start(t, cmd)
	stdin.Close()
	outer.Ready()
	shell := childrenOf(t, outer.PID)
	var number int
	if _, err := fmt.Sscan(shell, &number); err != nil {
		t.Fatal(err)
	}
	pid := childrenOf(t, number)

	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	inside := command(t, "top", "--ready-file", ready, "-p", "2", "--json", "--interval", "100ms")
	inside.Dir, inside.Path, inside.Args = dir, nsenter, append([]string{"nsenter", "-t", pid, "--pid", "--mount"}, inside.Args...)
	fromInside := startIn(t, inside, dir, ready)
	fromOutside := startTop(t, "-p", pid, "--json", "--interval", "100ms")
	onePhase(t, outer)
	fromInside.ends(cli.OK)
	fromOutside.ends(cli.OK)
	end.Close()
	watched(t, fromOutside.Output(), outer)
	watched(t, fromInside.Output(), outer)
}
