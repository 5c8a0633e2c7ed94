package activity

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func TestJoinPath(t *testing.T) {
	for parts, want := range map[string]string{
		"":                           "",
		"hosts\x00etc\x00\x00":       "/etc/hosts",
		"hosts\x00\x00":              "/hosts",
		"c\x00b\x00a\x00":            ".../a/b/c", // the beginning is missing
		"memfd:x\x00\x00":            "/memfd:x",
		" a b\x00with\nline\x00\x00": "/with\nline/ a b",
	} {
		if got := joinPath([]byte(parts)); got != want {
			t.Errorf("%q: %q, want %q", parts, got, want)
		}
	}
}

// A record becomes the corresponding access, with as much of it as was sent.
func TestDecodeAccess(t *testing.T) {
	var record filesActivityFile
	record.Head.Time, record.Head.Tid, record.Head.Kind = 5, 7, uint8(Use)
	record.File, record.Pid, record.Fd, record.Event = 0xffff8880, 6, 3, uint32(FileOpens)
	record.LockType, record.LockWhence, record.LockStart, record.LockLength = 1, 2, 1<<64-3, 4
	path := "hosts\x00etc\x00\x00"
	record.PathLength = uint32(copy(record.Path[:], path))
	copy(record.Text[:], "../etc/hosts\x00garbage")
	whole := unsafe.Slice((*byte)(unsafe.Pointer(&record)), accessOpenedSize)
	a := &Activity{}
	for _, size := range []int{accessSize, accessPathSize, accessOpenedSize} {
		var e Event
		want := Access{FD: 3, File: 0xffff8880, Event: FileOpens, Lock: Lock{1, 2, -3, 4}}
		if size >= accessPathSize {
			want.Path = "/etc/hosts"
		}
		if size >= accessOpenedSize {
			want.Opened = "../etc/hosts"
		}
		if !a.Decode(whole[:size], &e) || e.Kind != Use || e.Time != 5 || e.TID != 7 || e.User != 6 {
			t.Fatalf("of %d bytes: %+v", size, e)
		}
		if diff := cmp.Diff(want, *e.Access); diff != "" {
			t.Errorf("of %d bytes: %s", size, diff)
		}
	}
	var e Event
	if a.Decode(whole[:accessSize-1], &e) {
		t.Error("a record that is cut is decoded")
	}
	record.PathLength = uint32(len(record.Path)) + 1
	if !a.Decode(whole, &e) || e.Access.Path != "" {
		t.Error("a path that is too long is taken")
	}
	record.Head.Kind, record.Head.Pc, record.Head.Result = uint8(Done), 6, 1<<64-9
	if !a.Decode(whole[:headSize], &e) || e.User != 6 || e.TID != 7 || e.Result != -9 || e.PC != 0 {
		t.Errorf("an end is %+v", e)
	}
}

// Each rule is for an existing system call.
func TestFileRules(t *testing.T) {
	for name := range fileRules {
		found := false
		for i := range systemCalls {
			found = found || systemCalls[i].name == name
		}
		if !found {
			t.Errorf("no system call %s", name)
		}
	}
}
