package functions

import (
	"os"
	"regexp"
	"testing"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// processed matches how the verifiers of all kernels print the number of instructions they
// processed.
var processed = regexp.MustCompile(`processed (\d+) insns`)

// Each program passes the kernel's verifier with each of its settings.
func TestProgramsLoad(t *testing.T) {
	testutil.NeedBPF(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	for _, narrow := range []bool{false, true} {
		for _, namespace := range []uint64{0, 5} {
			f, err := Load(Target{PID: uint32(os.Getpid()), NamespaceInode: namespace, Narrow: narrow}, Options{}, Mode{}, 0, 1<<16, ebpf.LogLevelStats)
			if err != nil {
				t.Fatalf("%+v", err)
			}
			for name, p := range map[string]*ebpf.Program{"entered": f.objects.Entered, "left": f.objects.Left, "looked": f.objects.Looked} {
				n := processed.FindStringSubmatch(p.VerifierLog)
				if n == nil {
					t.Fatalf("%s: the verifier printed %q", name, p.VerifierLog)
				}
				t.Logf("%s: %s instructions verified", name, n[1])
			}
			// Without cookies each site has a program of its own.
			fn := &Function{Args: "ds", Result: 'd'}
			one, err := f.Entry(fn, 4, Ways{})
			if err != nil {
				t.Fatal(err)
			}
			two, err := f.Return(Leaving{text: true})
			if err != nil {
				t.Fatal(err)
			}
			if one.Program == two.Program || one.Cookie != 0 || two.Cookie != 1 {
				t.Errorf("%+v and %+v", one, two)
			}
			if lost, err := f.Grown(); err != nil || lost != (Losses{}) {
				t.Errorf("%+v, %v", lost, err)
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A record becomes the corresponding event. Truncated and unknown records become none.
func TestDecode(t *testing.T) {
	fn, value := &Function{Args: "bsdxs", Result: 's'}, &Value{Size: 5}
	f := &Functions{sites: []*site{{function: fn}, {}, {value: value}, {function: &Function{Args: "xwd"}, narrow: true}}}
	var entry functionsCallEntry
	entry.Head.Time, entry.Head.Slot, entry.Head.Tid, entry.Head.Kind, entry.Head.Unread = 5, 6, 7, uint8(Entered), 2
	entry.Pc, entry.Caller = 0x1234, 0x99
	entry.Words = [16]uint64{0xff02, 0x5000, 1<<64 - 3, 4, 0x10}
	copy(entry.Text[0][:], "text\x00garbage")
	record := unsafe.Slice((*byte)(unsafe.Pointer(&entry)), entrySize+2*textBytes)
	var e Event
	if !f.Decode(record, &e) || e.Time != 5 || e.TID != 7 || e.PC != 0x1234 || e.Caller != 0x99 || e.Function != fn {
		t.Fatalf("%+v", e)
	}
	want := []Argument{{'b', 1, ""}, {'s', 0x5000, "text"}, {'d', 1<<64 - 3, ""}, {'x', 4, ""}, {'p', 0x10, ""}}
	if diff := cmp.Diff(want, e.Arguments(nil)); diff != "" {
		t.Error(diff)
	}
	if f.Decode(record[:entrySize-1], &e) || f.Decode(record[:headSize-1], &e) {
		t.Error("a record that is cut is decoded")
	}
	entry.Head.Site, entry.Words = 3, [16]uint64{0xfffffffe, 0x20000000, 0x40040000, 9}
	want = []Argument{{'x', 1<<64 - 2, ""}, {'w', 0x4004000020000000, ""}, {'d', 9, ""}}
	if !f.Decode(record, &e) {
		t.Fatal("not decoded")
	}
	if diff := cmp.Diff(want, e.Arguments(nil)); diff != "" {
		t.Errorf("of a 32-bit program: %s", diff)
	}
	for _, change := range []func(){
		func() { entry.Head.Kind = 0 },
		func() { entry.Head.Kind = 9 },
		func() { entry.Head.Kind, entry.Head.Site = uint8(Entered), 1 },
		func() { entry.Head.Kind, entry.Head.Site = uint8(Entered), 2 },
		func() { entry.Head.Kind, entry.Head.Site = uint8(Left), 2 },
		func() { entry.Head.Kind, entry.Head.Site = uint8(Looked), 1 },
		func() { entry.Head.Kind, entry.Head.Site = uint8(Entered), 4 },
	} {
		change()
		if f.Decode(record, &e) {
			t.Errorf("decoded: %+v", entry.Head)
		}
	}
	var exit functionsCallExit
	exit.Head.Kind, exit.Head.Site, exit.Result = uint8(Left), 1, 0x77
	copy(exit.Text[:], "result\x00")
	whole := unsafe.Slice((*byte)(unsafe.Pointer(&exit)), unsafe.Sizeof(exit))
	if !f.Decode(whole, &e) {
		t.Fatal("not decoded")
	}
	e.site, e.Function = f.sites[0], fn
	if diff := cmp.Diff(Argument{'s', 0x77, "result"}, e.Result()); diff != "" {
		t.Error(diff)
	}
	var look functionsCallValue
	look.Head.Kind, look.Head.Site = uint8(Looked), 2
	copy(look.Data[:], "12345678")
	if !f.Decode(unsafe.Slice((*byte)(unsafe.Pointer(&look)), valueStart+64), &e) || string(e.Data()) != "12345" || e.Value != value {
		t.Errorf("%+v", e)
	}
	look.Head.Unread = 1
	if !f.Decode(unsafe.Slice((*byte)(unsafe.Pointer(&look)), valueStart+64), &e) || len(e.Data()) != 0 {
		t.Errorf("what could not be read is %q", e.Data())
	}
}
