package swap_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	decoder "rtrace-bpf/decoder/swap"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/trace"
)

// dumpSystem returns the dump of a record's message, by a reader that knows the number
// of processors.
func dumpSystem(t *testing.T, cpus int, r trace.Record) string {
	t.Helper()
	data, _ := write(t, swap.Options{}, r)
	var text bytes.Buffer
	if damaged, err := decoder.Dump(&text, bytes.NewReader(data), decoder.Options{Strict: true, CPUs: cpus}); err != nil || damaged != 0 {
		t.Fatalf("%d damaged, %v\n%s", damaged, err, &text)
	}
	return strings.Join(strings.Fields(text.String())[6:], " ")
}

// Every field is where the table of fields has it, and no byte follows the last one.
func TestSystem(t *testing.T) {
	s := swap.System{
		Frequencies: []float32{800000, 2600000.5}, Loads: []float32{25, 0.0001}, MemoryUsed: 11,
		Target: swap.SystemProcess{
			SystemLoad: swap.SystemLoad{ID: 7, Percent: 12.5}, Virtual: 12, Resident: 13, Shared: 14, PSS: 15, TotalAlloc: 16,
			Threads: []swap.SystemLoad{{ID: 7, Percent: 12}, {ID: 8, Percent: 0.5}},
		},
		Others: []swap.SystemLoad{{ID: 1, Percent: 3}},
		Figures: map[string]uint64{
			"total_used_drive_mb": 17, "disk_reads": 18, "disk_sectors_read": 19, "disk_writes": 20, "disk_sectors_written": 21,
			"network_send": 22, "network_receive": 1 << 40, "brightness": 24, "voltage": 25,
		},
	}
	want := "SYSTEM seq=0 time=1000000000.000000009 cpu_frequency_khz=[800000 2.6000005e+06] cpu_load_percent=[25 0] system_memory_used=11 " +
		"target_processes=[{pid=7 load=12.5 virtual=12 resident=13 shared=14 pss=15 total_alloc=16 threads=[{tid=7 load=12} {tid=8 load=0.5}]}] " +
		"other_processes=[{pid=1 load=3}] total_used_drive_mb=17 disk_reads=18 disk_sectors_read=19 disk_writes=20 disk_sectors_written=21 " +
		"network_send=22 network_receive=4294967295 wifi=0 bt=0 gps=0 brightness=24 camera=0 sound=0 audio=0 vibration=0 voltage=25 rssi=0 " +
		"video=0 call=0 dnet=0 energy=0 energy_per_device=[0 0 0 0 0] app_energy_per_device=[0 0 0 0 0]"
	if got := dumpSystem(t, 2, s.Record(9, 7)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// A reader that does not know the number of processors finds it.
	if got := dumpSystem(t, 0, s.Record(9, 7)); got != want {
		t.Errorf("without the number of processors: %s", got)
	}
	if devices := swap.SystemDevices(); len(devices) != 5 || devices[0] != "FLASH" {
		t.Errorf("%v", devices)
	}
}

// Of lists that are too long for a message, the elements with the highest load are
// kept.
func TestLongSystem(t *testing.T) {
	s := swap.System{Loads: make([]float32, 512)}
	for i := range int32(10_000) {
		s.Target.Threads = append(s.Target.Threads, swap.SystemLoad{ID: 20_000 + i, Percent: float32(i) / 200})
		s.Others = append(s.Others, swap.SystemLoad{ID: 1 + i, Percent: float32(10_000-i) / 200})
	}
	r := s.Record(9, 7)
	if n := len(r.Opaque.Data); n > 32747 || n < 30_000 {
		t.Errorf("%d bytes", n)
	}
	got := dumpSystem(t, 512, r)
	for _, kept := range []string{"tid=29999 ", "tid=29998 ", "pid=1 load=50", "pid=2 "} {
		if !strings.Contains(got, kept) {
			t.Errorf("no %s", kept)
		}
	}
	for _, left := range []string{"tid=20000 ", "pid=10000 "} {
		if strings.Contains(got, left) {
			t.Errorf("%s is there", left)
		}
	}
}

// PROCESS_STATUS_INFO in both layouts, which readers distinguish, and cut where there
// is no more room.
func TestStatus(t *testing.T) {
	files := []swap.OpenFile{{FD: 3, Size: 5000, Path: "/tmp/a"}, {FD: 17, Size: 1 << 60, Path: "/b"}}
	for dialect, want := range map[swap.Dialect]string{
		swap.Document: "files=[{fd=3 tid=7 size=5000 path=\"/tmp/a\"} {fd=17 tid=7 size=281474976710655 path=\"/b\"}]",
		swap.Kernel:   "layout=kernel41 pid=7 files=[{fd=3 size=5000 path=\"/tmp/a\"} {fd=17 size=281474976710655 path=\"/b\"}]",
	} {
		r, n := swap.Status(dialect, 9, 7, files)
		if got := dumpSystem(t, 0, r); n != 2 || !strings.HasSuffix(got, want) || !strings.Contains(got, "PROCESS_STATUS_INFO seq=0 ") {
			t.Errorf("%d listed: %s, want %s", n, got, want)
		}
	}
	if r, n := swap.Status(swap.Document, 9, 7, nil); n != 0 || !strings.HasSuffix(dumpSystem(t, 0, r), "pid=7 files=[]") {
		t.Errorf("an empty list: %d", n)
	}
	long := make([]swap.OpenFile, 1000)
	for i := range long {
		long[i] = swap.OpenFile{FD: int32(i), Path: "/" + strings.Repeat("x", 100)}
	}
	r, n := swap.Status(swap.Document, 9, 7, long)
	if n < 200 || n > 300 || len(r.Opaque.Data) > 32747 || !strings.Contains(dumpSystem(t, 0, r), fmt.Sprintf("fd=%d ", n-1)) {
		t.Errorf("%d of 1000 files in %d bytes", n, len(r.Opaque.Data))
	}
}

func TestLeakReport(t *testing.T) {
	want := `LSAN seq=0 time=1000000000.000000009 status=2 pid=7 message="a.leaks" call_type=0 caller=0x0`
	if got := dumpSystem(t, 0, swap.LeakReport(9, 7, "a.leaks")); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
