package tracer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/plan"
)

// BenchmarkTables measures making the unwind tables of a whole process and installing
// them in the kernel, as attaching does. The files are in the page cache, since the
// process has been started.
func BenchmarkTables(b *testing.B) {
	testutil.NeedBPF(b)
	processes := []struct {
		name  string
		start func(b *testing.B) *testutil.Child
	}{
		{"python3", func(b *testing.B) *testutil.Child {
			_, child, _ := pythonWorkload("", "default", "import json, sqlite3, ctypes, ssl", "").start(b)
			return child
		}},
		{"gdb", func(b *testing.B) *testutil.Child {
			child, feed := fed(b, exec.Command(installed(b, "gdb"), "-nx", "-q"), "echo up\\n", "up")
			b.Cleanup(func() { feed.Close() })
			return child
		}},
		{"cc1plus", func(b *testing.B) *testutil.Child {
			child, feed := compiling(b, compiler(b))
			b.Cleanup(func() { feed.Close() })
			return child
		}},
		{"clang", func(b *testing.B) *testutil.Child {
			cmd := exec.Command(installed(b, "clang-14"), "-cc1", "-fsyntax-only", "-x", "c++", fifo(b))
			child, feed := compiling(b, cmd)
			b.Cleanup(func() { feed.Close() })
			return child
		}},
	}
	for _, p := range processes {
		b.Run(p.name, func(b *testing.B) { measureTables(b, p.start(b).PID) })
	}
}

func measureTables(b *testing.B, pid int) {
	cpus, err := host.OnlineCPUs()
	if err != nil {
		b.Fatal(err)
	}
	s := samples{}
	for b.Loop() {
		p := planFor(b, plan.Options{PID: pid, Depth: plan.DefaultDepth})
		k := &kernel{}
		if err := k.programs.Load(p, cpus); err != nil {
			b.Fatal(err)
		}
		register(b, s, k, p)
		if err := errors.Join(k.Close(), p.Close()); err != nil {
			b.Error(err)
		}
	}
	for name := range s {
		b.ReportMetric(s.median(name), name)
	}
}

// register measures registering the tables of a process with the programs.
func register(b *testing.B, s samples, k *kernel, p *plan.Plan) {
	b.Helper()
	before := ownMemory(b)
	start, busy := time.Now(), cpu(b)
	if err := k.unwinding.register(p, &k.programs); err != nil {
		b.Fatal(err)
	}
	spent := float64(time.Since(start).Microseconds()) / 1000
	busy = cpu(b) - busy
	peak := peakRSS(b)
	after := ownMemory(b)
	rows := float64(rowsOf(k))
	s.add("files", float64(len(k.unwinding.tables.Files)))
	s.add("krows", rows/1000)
	s.add("rules", float64(len(k.unwinding.tables.Known)))
	s.add("ms", spent)
	s.add("ms/100krows", spent/rows*100_000)
	s.add("cpu-ms", float64(busy.Microseconds())/1000)
	s.add("kernel-MB", float64(kernelMemory(b, k))/1e6)
	s.add("rss-peak-MB", peak-before.rss)
	s.add("rss-kept-MB", after.rss-before.rss)
	s.add("alloc-MB", float64(after.allocated-before.allocated)/1e6)
}

// rowsOf returns the number of rows in the kernel.
func rowsOf(k *kernel) (n int) {
	for _, t := range k.unwinding.tables.Files {
		n += int(t.Rows)
	}
	return n
}

// kernelMemory returns the bytes that the kernel charges for tables, rules and mappings,
// and for the maps that hold them.
func kernelMemory(b *testing.B, k *kernel) uint64 {
	b.Helper()
	total := memlock(b, k.programs.Tables) + memlock(b, k.programs.Rules) + memlock(b, k.programs.Spaces)
	inner := func(outer *ebpf.Map, slot uint32) {
		m := innerMap(b, outer, slot)
		defer m.Close()
		total += memlock(b, m)
	}
	inner(k.programs.Spaces, k.unwinding.follower.Space.Slot)
	for _, t := range k.unwinding.tables.Files {
		if t.Rows > 0 {
			inner(k.programs.Tables, t.Slot)
		}
	}
	return total
}

// innerMap returns the map in a slot of an outer map.
func innerMap(b *testing.B, outer *ebpf.Map, slot uint32) *ebpf.Map {
	b.Helper()
	var m *ebpf.Map
	if err := outer.Lookup(slot, &m); err != nil {
		b.Fatal(err)
	}
	return m
}

func memlock(b *testing.B, m *ebpf.Map) uint64 {
	b.Helper()
	info, err := m.Info()
	if err != nil {
		b.Fatal(err)
	}
	bytes, ok := info.Memlock()
	if !ok {
		b.Fatal("the kernel does not report the memory of a map")
	}
	return bytes
}

// usage is what this process uses.
type usage struct {
	rss       float64 // MB, without garbage
	allocated uint64  // bytes allocated so far
}

// ownMemory measures this process and resets the peak of its resident set.
func ownMemory(b *testing.B) usage {
	b.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return usage{peakRSS(b), m.TotalAlloc}
}

// peakRSS returns the peak of this process's resident set, in MB.
func peakRSS(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range bytes.Lines(status) {
		var kb float64
		if n, _ := fmt.Sscanf(string(line), "VmHWM: %f kB", &kb); n == 1 {
			return kb / 1000
		}
	}
	b.Fatal("no VmHWM")
	return 0
}

// BenchmarkLateTables measures how long it takes, during a trace, from the mapping of a
// library until the programs have its table.
func BenchmarkLateTables(b *testing.B) {
	testutil.NeedBPF(b)
	for _, name := range []string{"libgcc_s.so.1", "libstdc++.so.6", "libpython3.11.so.1.0", "libLLVM-14.so.1"} {
		b.Run(name, func(b *testing.B) {
			files, _ := filepath.Glob("/usr/lib/*-linux-gnu/" + name)
			if len(files) == 0 {
				skipped(b, name+" is not installed")
			}
			path, err := filepath.EvalSymlinks(files[0])
			if err != nil {
				b.Fatal(err)
			}
			s := samples{}
			for b.Loop() {
				s.add("ms", float64(lateTable(b, path))/1e6)
			}
			b.ReportMetric(s.median("ms"), "ms")
		})
	}
}

// lateTable has a program open a library and returns after how many ns its table is in
// use.
func lateTable(b *testing.B, path string) uint64 {
	b.Helper()
	script := "ctypes.CDLL('" + path + "')\nos.read(4, 1)"
	_, child, open := pythonWorkload("", "default", "import ctypes", script).start(b)
	tracer, err := Open(planFor(b, plan.Options{PID: child.PID, Depth: plan.DefaultDepth}))
	if err != nil {
		b.Fatal(err)
	}
	mapped, done := make(chan *trace.Record, 1), make(chan error, 1)
	go func() {
		var rec trace.Record
		var err error
		for err == nil {
			err = tracer.ReadRecord(&rec)
			if err == nil && rec.Kind == trace.KindMapping && rec.Mapping.Path == path {
				mapped <- rec.Clone()
			}
		}
		done <- err
	}()
	open()
	late := inPlace(b, tracer.kernel, uint32(child.PID), mapped)
	child.Go()
	child.Succeed()
	if err := <-done; !errors.Is(err, io.EOF) {
		b.Error(err)
	}
	if err := tracer.Close(); err != nil {
		b.Error(err)
	}
	return late
}

// view is what the programs knew of a process from a time on.
type view struct {
	time uint64
	code []object.ProbeMapping
}

// inPlace waits until the programs use a table for the mapping in a record from mapped,
// and returns how many ns after the record's time that is.
func inPlace(b *testing.B, k *kernel, pid uint32, mapped <-chan *trace.Record) uint64 {
	b.Helper()
	const resolution = 250 * time.Microsecond
	ticker := time.NewTicker(resolution)
	defer ticker.Stop()
	var views []view
	var process object.ProbeProcess
	var library *trace.Record
	for {
		select {
		case library = <-mapped:
		case <-ticker.C:
			old := process.Target.Epoch
			if err := k.programs.Targets.Lookup(pid, &process); err != nil {
				b.Fatal(err)
			}
			if process.Target.Epoch != old {
				views = append(views, view{order.Clock(), spaceOf(b, k, process.Target)})
			}
		}
		if library == nil {
			continue
		}
		i := slices.IndexFunc(views, func(v view) bool {
			return slices.ContainsFunc(v.code, func(m object.ProbeMapping) bool { return m.Start == library.Mapping.Start && m.Rows > 0 })
		})
		if i >= 0 {
			return views[i].time - uint64(library.Time)
		}
	}
}

// spaceOf returns the mappings of a process as the programs have them.
func spaceOf(b *testing.B, k *kernel, target object.ProbeTarget) []object.ProbeMapping {
	b.Helper()
	space := innerMap(b, k.programs.Spaces, target.Space)
	defer space.Close()
	code := make([]object.ProbeMapping, space.MaxEntries()-1)
	for i := range code {
		if err := space.Lookup(uint32(i+1), &code[i]); err != nil {
			b.Fatal(err)
		}
	}
	return code
}
