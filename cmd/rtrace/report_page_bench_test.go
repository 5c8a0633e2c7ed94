package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"rtrace-bpf/encoder/sprtrace"
	"rtrace-bpf/trace"
)

// writeForest writes a binary trace of a program with many call sites: mallocs calls over
// the given number of stacks of 20 to 40 frames, which share their outer halves in groups. 1
// in 50 is never freed, and the others within the next 1000. Its code is in m. It returns
// the number of calls.
func writeForest(w io.Writer, mallocs, stacks int, m trace.Mapping) (calls int, err error) {
	e, err := sprtrace.New(w, sprtrace.Options{})
	if err != nil {
		return 0, err
	}
	put := func(r *trace.Record) {
		if err == nil {
			err = e.WriteRecord(r)
		}
	}
	put(&trace.Record{Kind: trace.KindHeader, Header: trace.Header{Arch: "x86_64", PointerSize: 8, Clock: trace.ClockDay}})
	put(&trace.Record{Kind: trace.KindProcess, PID: 4711, Process: trace.Process{Name: "/usr/bin/forest", WallTime: 1e18, Depth: 64}})
	put(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "memory allocation in bytes"}})
	put(&trace.Record{Kind: trace.KindMapping, Mapping: m})

	x := uint64(1)
	random := func(n uint64) uint64 {
		x = x*6364136223846793005 + 1442695040888963407
		return x >> 33 % n
	}
	all := make([][]uint64, stacks)
	for i := range all {
		for k := range 20 + i%21 {
			// The nearer to the outermost frame, the fewer places there are.
			places := max(1, uint64(stacks)>>min(k, 40))
			all[i] = append(all[i], m.Start+1+(uint64(i)%places*16+uint64(k)*4096)%(m.End-m.Start))
		}
	}
	var (
		window [1000]uint64
		unused []uint64
		next   = uint64(0x55c9a2266000)
		rec    = trace.Record{Kind: trace.KindCall, Call: trace.Call{Resource: 1}}
		c      = &rec.Call
	)
	for i := range mallocs {
		rec.Time = int64(3600e9) + int64(i)*1000
		id := next
		if n := len(unused); n > 0 {
			id, unused = unused[n-1], unused[:n-1]
		} else {
			next += 48
		}
		c.Op, c.Function, c.ID, c.Size = trace.OpAlloc, "malloc", id, 16+random(1000)
		c.Stack = trace.Stack{Frames: all[random(uint64(stacks))], End: trace.StackComplete}
		calls++
		put(&rec)
		at := random(1000)
		if old := window[at]; old != 0 {
			c.Op, c.Function, c.ID, c.Size, c.Stack = trace.OpFree, "free", old, 0, trace.Stack{}
			unused = append(unused, old)
			calls++
			put(&rec)
		}
		if window[at] = id; i%50 == 0 {
			window[at] = 0
		}
	}
	if err == nil {
		err = e.Close()
	}
	return calls, err
}

// codeOf is the mapping of the code of a program that is linked at fixed addresses.
func codeOf(b *testing.B, program string) trace.Mapping {
	f, err := elf.Open(program)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	return trace.Mapping{Start: text.Addr, End: text.Addr + text.Size, Path: program}
}

// BenchmarkReport measures the built program on 1 million calls: seconds of time
// and of CPU time, the size of the page in MB and the peak of its memory in MB.
func BenchmarkReport(b *testing.B) {
	dir := b.TempDir()
	program := filepath.Join(dir, "rtrace")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	forest := trace.Mapping{Start: 0x55c9757eb000, End: 0x55c975feb000, Path: "/usr/bin/forest"}
	for _, tt := range []struct {
		stacks int
		code   trace.Mapping
	}{{256, forest}, {1000, forest}, {10_000, forest}, {100_000, forest}, {10_000, codeOf(b, program)}, {100_000, codeOf(b, program)}} {
		name := fmt.Sprintf("stacks=%d", tt.stacks)
		if tt.code != forest {
			name += "/lines" // the program has debugging information
		}
		file := filepath.Join(dir, "forest.rtrace")
		f, err := os.Create(file)
		if err != nil {
			b.Fatal(err)
		}
		calls, err := writeForest(f, 505_000, tt.stacks, tt.code)
		if err = errors.Join(err, f.Close()); err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			var cpu float64
			peak, size := int64(0), int64(0)
			for b.Loop() {
				page := filepath.Join(dir, "report.html")
				cmd := exec.Command(program, "report", "-o", page, file)
				cmd.Stderr = os.Stderr
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				s := cmd.ProcessState
				cpu += (s.UserTime() + s.SystemTime()).Seconds()
				peak = max(peak, peakMemory(s))
				info, err := os.Stat(page)
				if err != nil {
					b.Fatal(err)
				}
				size = info.Size()
			}
			b.ReportMetric(float64(calls)/1e6, "Mcalls")
			b.ReportMetric(cpu/float64(b.N), "cpu-s/page")
			b.ReportMetric(float64(size)/1e6, "page-MB")
			b.ReportMetric(float64(peak)/1e6, "peak-MB")
		})
	}
}
