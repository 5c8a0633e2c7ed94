package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
)

// TestBashCompletion checks what bash would offer: names and numbers of existing processes,
// users, the values of flags with few values, and a command after --.
func TestBashCompletion(t *testing.T) {
	bash := testutil.Installed(t, "bash")
	dir := t.TempDir()
	script := filepath.Join(dir, "completion")
	program := completed()
	if err := os.WriteFile(script, []byte(program.Bash()), 0o600); err != nil {
		t.Fatal(err)
	}
	comm, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	pid, name := fmt.Sprint(os.Getpid()), strings.TrimSpace(string(comm))
	for _, tt := range []struct {
		words []string
		want  string // one of the words offered
		not   string
	}{
		{[]string{"-p", ""}, pid, "completion"},
		{[]string{"--pid", "=", ""}, pid, "completion"},
		{[]string{"--pid=1," + pid[:1]}, "1," + pid, pid},
		{[]string{"toggle", "-p", pid}, pid, ""},
		{[]string{"mark", "--pid=" + pid}, pid, ""},
		{[]string{"rec"}, "record", "completion"},
		{[]string{""}, "toggle", "completion"},
		{[]string{"record", "-p", ""}, pid, "completion"},
		{[]string{"record", "--form"}, "--format", ""},
		{[]string{"--form"}, "--format", ""},
		{[]string{"plan", "--allocator", "je"}, "jemalloc", ""},
		{[]string{"plan", "--form"}, "", "--format"},
		{[]string{"top", "--sort", "gr"}, "growth", ""},
		{[]string{"help", "for"}, "formats", ""},
		{[]string{"help", "pl"}, "plan", ""},
		{[]string{"record", "--", "bas"}, "bash", "completion"},
		{[]string{"record", "--", "bash", "comp"}, "completion", ""},
		{[]string{"--comm", name[:2]}, name, "completion"},
		{[]string{"--uid", me.Username[:1]}, me.Username, "completion"},
		{[]string{"--format", "j"}, "jsonl", "text"},
		{[]string{"--format", "=", "te"}, "text", "jsonl"},
		{[]string{"--unwind", "h"}, "helper", ""},
		{[]string{"-e", "fi"}, "file", "mmap"},
		{[]string{"-e", "memory", ":", "fi"}, "file", "mmap"},
		{[]string{"-e", "memory", ":"}, "mmap", "completion"},
		{[]string{"--swap-syscalls", "file,"}, "file,all", "all"},
		{[]string{"--allocator", "je"}, "jemalloc", ""},
		{[]string{"--duration", ""}, "", "completion"},
		{[]string{"-o", "comp"}, "completion", ""},
		{[]string{"-q", "--dur"}, "--duration", ""},
		{[]string{"-q", ""}, "", "completion"},
		{[]string{"-q", "--", "bas"}, "bash", "completion"},
		{[]string{"-q", "--", "bash", "comp"}, "completion", ""},
	} {
		words := append([]string{"rtrace-bpf"}, tt.words...)
		cmd := exec.Command(bash, append([]string{"--norc", "-c", `
			source "$0" || exit
			COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
			_rtrace_bpf; printf '%s\n' "${COMPREPLY[@]}"`, script}, words...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := strings.Split(strings.TrimSpace(string(out)), "\n")
		if !slices.Contains(got, tt.want) || tt.not != "" && slices.Contains(got, tt.not) {
			t.Errorf("%q: %q, want %q and not %q", tt.words, got, tt.want, tt.not)
		}
	}
}

// Each flag with a value declares what a shell offers for it, if there is anything to
// offer.
func TestOffers(t *testing.T) {
	nothing := map[string]bool{ // only the user knows the value
		"duration": true, "min-size": true, "resource": true, "symbol": true, "dotnet-events": true, "depth": true, "verify-unwind": true, "verify-sites": true, "mtrc-words": true,
		"swap-sample": true, "function": true, "fbi": true, "swap-system": true, "nettrace-version": true, "postproc": true, "attach": true, "ring-size": true,
		"max-rate": true, "budget": true, "max-size": true, "interval": true, "filter": true, "count": true, "rows": true, "max-processes": true, "verbose": true,
		"watch": true, "max-walk": true, "snapshot": true,
	}
	for _, page := range pages() {
		for _, group := range page.Flags {
			for _, f := range group.Flags {
				if f.Value != "" && (f.Offer.Things == cli.OfferNothing) != nothing[f.Long] {
					t.Errorf("%s --%s: offers %v", page.Name, f.Long, f.Offer)
				}
			}
		}
	}
}
