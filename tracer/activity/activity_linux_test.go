package activity

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/internal/testutil"
)

func TestMain(m *testing.M) { testutil.Main(m) }

// privileged skips the test where BPF must not be used. Kernels before 5.11 charge BPF memory to
// RLIMIT_MEMLOCK, which a tracer has already removed at this point.
func privileged(t *testing.T) {
	t.Helper()
	testutil.NeedBPF(t)
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
}

// processed matches how the verifiers of all kernels print the number of instructions they
// processed.
var processed = regexp.MustCompile(`processed (\d+) insns`)

// Each program passes the kernel's verifier with each of its settings, and attaches.
func TestProgramsLoad(t *testing.T) {
	privileged(t)
	own := Target{PID: uint32(os.Getpid())}
	inner := own
	inner.NamespaceDev, inner.NamespaceInode = 4, 5
	for name, target := range map[string]Target{"initial": own, "namespace": inner} {
		t.Run(name, func(t *testing.T) {
			o := Options{Sample: 10 * time.Millisecond, Switches: true, Calls: File | Descriptor, Files: true}
			a, err := Load(target, o, 0, 1<<16, ebpf.LogLevelStats)
			if err != nil {
				t.Fatalf("%+v", err)
			}
			for name, p := range map[string]*ebpf.Program{
				"sampled": a.objects.Sampled, "switched": a.objects.Switched,
				"call_begins": a.objects.CallBegins, "call_ends": a.objects.CallEnds,
				"opened_before": a.files.objects.OpenedBefore,
				"use_begins":    a.files.objects.UseBegins, "use_ends": a.files.objects.UseEnds,
			} {
				n := processed.FindStringSubmatch(p.VerifierLog)
				if n == nil {
					t.Fatalf("%s: the verifier printed %q", name, p.VerifierLog)
				}
				t.Logf("%s: %s instructions verified", name, n[1])
			}
			if err := a.Attach([]int{0}); err != nil {
				t.Errorf("attach: %v", err)
			}
			if err := a.Disable(); err != nil {
				t.Error(err)
			}
			if _, err := a.Grown(); err != nil {
				t.Error(err)
			}
			if err := a.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Events without a ring are counted.
func TestLossIsCounted(t *testing.T) {
	privileged(t)
	a, err := Load(Target{PID: uint32(os.Getpid())}, Options{Calls: File}, 0, 1<<16, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := a.Attach([]int{0}); err != nil {
		t.Fatal(err)
	}
	const calls = 10
	for range calls {
		_, _ = os.Lstat("/") // no ring was made, so none of the events arrives
	}
	if err := a.Disable(); err != nil {
		t.Fatal(err)
	}
	lost, err := a.Grown()
	if err != nil {
		t.Fatal(err)
	}
	if lost.Full < 2*calls {
		t.Errorf("%d events lost, want at least %d: a beginning and an end each", lost.Full, 2*calls)
	}
	if again, err := a.Grown(); err != nil || again != (Losses{}) {
		t.Errorf("since then: %+v, %v", again, err)
	}
}

// A record becomes the corresponding event. Truncated and unknown records become none.
func TestDecode(t *testing.T) {
	a := &Activity{calls: newCallTable(File|Descriptor, symbols{"__x64_sys_openat": 0xffff, "__arm64_sys_openat": 0xffff})}
	openat := 0
	for number, c := range a.calls[0] {
		if c != nil && c.Name == "openat" {
			openat = number
		}
	}
	var call activityActivityCall
	call.Head = activityActivity{Time: 5, Tid: 7, Kind: uint8(Begin), Number: uint16(openat), Pc: 0x1234}
	call.Args = [6]uint64{1<<64 - 100, 0x5000, 2, 0o644, 8, 9}
	copy(call.Text[0][:], "/etc/hosts\x00garbage")
	record := unsafe.Slice((*byte)(unsafe.Pointer(&call)), unsafe.Sizeof(call))[:callSize+textBytes]
	var e Event
	if !a.Decode(record, &e) {
		t.Fatal("not decoded")
	}
	if e.Time != 5 || e.TID != 7 || e.PC != 0x1234 || e.Call.Name != "openat" || e.Call.Class != File || e.Call.Address != 0xffff {
		t.Errorf("%+v of %+v", e, e.Call)
	}
	want := []Argument{{'d', 1<<64 - 100, ""}, {'s', 0x5000, "/etc/hosts"}, {'d', 2, ""}, {'d', 0o644, ""}}
	if diff := cmp.Diff(want, e.Arguments(nil)); diff != "" {
		t.Error(diff)
	}
	call.Head.Result = 1 // the text could not be read
	want[1] = Argument{'p', 0x5000, ""}
	if !a.Decode(record, &e) {
		t.Fatal("not decoded")
	}
	if diff := cmp.Diff(want, e.Arguments(nil)); diff != "" {
		t.Error(diff)
	}
	if a.Decode(record[:callSize-1], &e) || a.Decode(record[:headSize-1], &e) {
		t.Error("a record that is cut is decoded")
	}
	for _, change := range []func(h *activityActivity){
		func(h *activityActivity) { h.Kind = 0 },
		func(h *activityActivity) { h.Kind = 9 },
		func(h *activityActivity) { h.Number = callNumbers },
		func(h *activityActivity) { h.Abi = uint8(abis) },
		func(h *activityActivity) { h.Number, h.Kind = uint16(callNumbers-1), uint8(End) },
	} {
		head := call.Head
		change(&call.Head)
		if a.Decode(record, &e) {
			t.Errorf("decoded: %+v", call.Head)
		}
		call.Head = head
	}
}

func TestParseClasses(t *testing.T) {
	for text, want := range map[string]Classes{
		"": 0, "file": File, "ipc,signal": IPC | Signal, "all": 0x3f, "descriptor,all": 0x3f,
		"process,network": Process | Network,
	} {
		got, err := ParseClasses(strings.FieldsFunc(text, func(r rune) bool { return r == ',' }))
		if err != nil || got != want {
			t.Errorf("%q: %#x, %v; want %#x", text, got, err, want)
		}
	}
	if _, err := ParseClasses([]string{"file", "files"}); err == nil {
		t.Error("files is no class")
	}
}

// The address of a call is that of its function in the kernel, or the call's number if the kernel
// does not show the address.
func TestSymbols(t *testing.T) {
	s := readSymbols(strings.NewReader("ffffffff81000010 T __x64_sys_newstat\nffffffff81000020 T __x64_sys_stat\n" +
		"ffffffff81000030 T __ia32_compat_sys_openat\nffffffff81000040 T __ia32_sys_openat\nffffffff81000050 T __arm64_sys_openat\n" +
		"ffffffffc0000000 t __x64_sys_close [module]\n0000000000000000 T __x64_sys_read\nnonsense\n"))
	if len(prefixes()[0]) == 0 {
		t.Fatal("no prefix")
	}
	if prefixes()[0][0] != "__x64_sys_" {
		if at := s.address(0, "openat", 56); at != 0xffffffff81000050 {
			t.Errorf("openat at %#x", at)
		}
		return
	}
	for _, x := range []struct {
		abi    int
		name   string
		number uint64
		want   uint64
	}{
		{0, "stat", 4, 0xffffffff81000010},
		{1, "openat", 295, 0xffffffff81000030},
		{0, "close", 3, 3},
		{0, "read", 0, 0},
		{1, "read", 3, 3},
	} {
		if at := s.address(x.abi, x.name, x.number); at != x.want {
			t.Errorf("%s at %#x, want %#x", x.name, at, x.want)
		}
	}
}

// The table has each call once, with valid letters, as many as the kernel passes, and no more
// texts than a record has room for.
func TestTable(t *testing.T) {
	for column := range 3 {
		seen := map[int16]string{}
		for i := range systemCalls {
			s := &systemCalls[i]
			number := s.numbers[column]
			if number >= callNumbers || number >= 0 && seen[number] != "" {
				t.Errorf("%s and %s have the number %d", s.name, seen[number], number)
			}
			seen[number] = s.name
			for _, letters := range []string{s.letters, s.narrow} {
				if len(letters) > activityArguments || strings.Trim(letters, "dxps") != "" || strings.Count(letters, "s") > activityTexts || s.classes == 0 {
					t.Errorf("%s: %q", s.name, letters)
				}
			}
		}
	}
	var rules bytes.Buffer
	table := newCallTable(File, nil)
	if err := table.rules(func(uint32, *activityCallRule) error { rules.WriteByte(1); return nil }); err != nil || rules.Len() < 40 {
		t.Errorf("%d rules, %v", rules.Len(), err)
	}
}
