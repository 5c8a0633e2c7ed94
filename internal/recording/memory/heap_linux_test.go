package memory

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"rtrace-bpf/internal/recording/status"
	"rtrace-bpf/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// Of a process that has ended by itself the state is the last one that was read while it
// was there.
func TestHeapOfEnded(t *testing.T) {
	child := testutil.Spawn(t, testutil.Build(t, "heapinfo"), "0")
	child.Ready()
	h := OpenHeap(child.PID, false, status.New(status.Options{Out: io.Discard}))
	defer h.Close()
	switch {
	case h.process.Known():
	case testutil.GuestLacks("libc6-dbg"):
		t.Skip("SKIPPED-GUEST: this virtual machine was made without libc6-dbg")
	default:
		t.Fatal("the C library has no symbols of its variables: install its debugging information (make need-test does)")
	}
	child.Go()
	child.Ready()
	h.Tick()
	at := h.time
	child.Go()
	child.Succeed()
	h.look(heapTime)
	if at == 0 || h.time != at {
		t.Errorf("the state was read at %d and %d", at, h.time)
	}
	got := map[string]uint64{} // by field in lower case
	v := reflect.ValueOf(h.last.HeapInfo)
	for i := range v.NumField() {
		got[strings.ToLower(v.Type().Field(i).Name)] = v.Field(i).Uint()
	}
	for line := range strings.Lines(string(child.Output())) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name != "break" && fmt.Sprint(got[name]) != value {
			t.Errorf("%s is %d, want %s", name, got[name], value)
		}
	}
}
