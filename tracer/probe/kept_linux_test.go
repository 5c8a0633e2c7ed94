package probe

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/cilium/ebpf"

	"rtrace-bpf/tracer/keeper"
	"rtrace-bpf/tracer/plan"
)

// packed returns the groups of a kit for probes of two files. The place 8 of the first
// file has two probes.
func packed(t *testing.T, multi bool) *keptProbes {
	t.Helper()
	k := &kit{multi: multi, cookies: multi, numbers: map[string]int{}}
	var files [2]string
	for i := range files {
		files[i] = filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(files[i], []byte("0123456789abcdef"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	enter, leave := new(ebpf.Program), new(ebpf.Program)
	for _, x := range []struct {
		run    *ebpf.Program
		file   int
		offset uint64
		ret    bool
	}{{leave, 0, 8, true}, {enter, 0, 8, false}, {enter, 1, 4, false}, {enter, 0, 14, false}} {
		p := plan.Probe{File: files[x.file], Offset: x.offset}
		file, err := k.file(&p)
		if err != nil {
			t.Fatal(err)
		}
		k.add(x.run, 100+x.offset, file, &p, x.ret)
	}
	if len(k.files) != 2 || len(k.programs) != 2 {
		t.Errorf("%d files, %d programs", len(k.files), len(k.programs))
	}
	if got := k.groups[1].originals; len(got) != 2 || string(got[0]) != "89ab" || string(got[1]) != "ef" {
		t.Errorf("instructions %q", got)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	return &keptProbes{groups: k.groups}
}

// Probes with the same program, file and kind are a group. uprobe_multi links attach to
// the process, perf events to a thread.
func TestGroups(t *testing.T) {
	site := func(offset uint64) keeper.Site { return keeper.Site{Offset: offset, Cookie: 100 + offset} }
	want := []keeper.Group{
		{Program: 0, File: 0, Return: true, Multi: true, Cookies: true, PID: 7, Sites: []keeper.Site{site(8)}},
		{Program: 1, File: 0, Multi: true, Cookies: true, PID: 7, Sites: []keeper.Site{site(8), site(14)}},
		{Program: 1, File: 1, Multi: true, Cookies: true, PID: 7, Sites: []keeper.Site{site(4)}},
	}
	if got := packed(t, true).addressed(7, 9); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range want {
		g := &want[i]
		g.Multi, g.Cookies, g.PID = false, false, 9
		for j := range g.Sites {
			g.Sites[j].Cookie = 0
		}
	}
	if got := packed(t, false).addressed(7, 9); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A thread holds each place once, however many probes it has.
func TestHeldOnce(t *testing.T) {
	want := []keeper.Group{
		{File: 0, PID: 9, Sites: []keeper.Site{{Offset: 8}}},
		{File: 0, PID: 9, Sites: []keeper.Site{{Offset: 14}}},
		{File: 1, PID: 9, Sites: []keeper.Site{{Offset: 4}}},
	}
	if got := packed(t, true).held(9); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}
