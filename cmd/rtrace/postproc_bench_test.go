package main

import (
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

// writeChurn writes a binary trace of a program that allocates and frees: mallocs calls over
// 256 stacks of 8 to 10 frames. 1 in 50 is never freed, and the others within the next 1000.
// It returns the number of calls.
func writeChurn(w io.Writer, mallocs int) (calls int, err error) {
	return writeChurnOf(w, mallocs, 1000, 50)
}

// writeChurnOf is writeChurn with window live blocks at a time, of which 1 in leaks is never
// freed.
func writeChurnOf(w io.Writer, mallocs, live, leaks int) (calls int, err error) {
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
	put(&trace.Record{Kind: trace.KindProcess, PID: 4711, Process: trace.Process{Name: "/usr/bin/churn", WallTime: 1e18, Depth: 10}})
	put(&trace.Record{Kind: trace.KindResource, Resource: trace.Resource{ID: 1, Type: "memory", Desc: "memory allocation in bytes"}})
	put(&trace.Record{Kind: trace.KindMapping, Mapping: trace.Mapping{Start: 0x55c9757eb000, End: 0x55c9757ff000, Path: "/usr/bin/churn"}})

	x := uint64(1)
	random := func(n uint64) uint64 {
		x = x*6364136223846793005 + 1442695040888963407
		return x >> 33 % n
	}
	var stacks [256][]uint64
	for i := range stacks {
		for range 8 + i%3 {
			stacks[i] = append(stacks[i], 0x55c9757eb000+random(0x14000))
		}
	}
	var (
		window = make([]uint64, live)
		unused []uint64
		next   = uint64(0x55c9a2266000)
		rec    = trace.Record{Kind: trace.KindCall, Call: trace.Call{Resource: 1}}
		c      = &rec.Call
	)
	free := func(i int) {
		if window[i] == 0 {
			return
		}
		c.Op, c.Function, c.ID, c.Size, c.Stack = trace.OpFree, "free", window[i], 0, trace.Stack{}
		unused = append(unused, window[i])
		window[i] = 0
		calls++
		put(&rec)
	}
	for i := range mallocs {
		rec.Time = int64(3600e9) + int64(i)*1000
		id := next
		if n := len(unused); n > 0 {
			id, unused = unused[n-1], unused[:n-1]
		} else {
			next += 48
		}
		c.Op, c.Function, c.ID, c.Size = trace.OpAlloc, "malloc", id, 16+random(1000)
		c.Stack = trace.Stack{Frames: stacks[random(256)], End: trace.StackComplete}
		calls++
		put(&rec)
		at := int(random(uint64(live)))
		free(at)
		if i%leaks != 0 {
			window[at] = id
		}
	}
	for i := range window {
		free(i)
	}
	if err == nil {
		err = e.Close()
	}
	return calls, err
}

// BenchmarkPostproc measures the built program on 1.2 million calls: millions
// of calls per second of CPU time (user and system), and the peak of its memory
// in MB.
func BenchmarkPostproc(b *testing.B) {
	program := buildRtrace(b)
	file := filepath.Join(b.TempDir(), "churn.rtrace")
	f, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	calls, err := writeChurn(f, 600_000)
	if err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil {
		b.Fatal(err)
	}
	b.Logf("%d calls, %d bytes each", calls, info.Size()/int64(calls))
	for _, args := range [][]string{{"-l"}, {}, {"-c"}, {"-l", "-c"}, {"--legacy", "-l"}, {"--legacy"}, {"--legacy", "-c"}} {
		b.Run(fmt.Sprint(args), func(b *testing.B) {
			var cpu float64
			peak := int64(0)
			for b.Loop() {
				cmd := exec.Command(program, append([]string{"postproc", file}, args...)...)
				cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				s := cmd.ProcessState
				cpu += (s.UserTime() + s.SystemTime()).Seconds()
				peak = max(peak, peakMemory(s))
			}
			b.ReportMetric(float64(calls)*float64(b.N)/cpu/1e6, "Mcalls/cpu-s")
			b.ReportMetric(float64(peak)/1e6, "peak-MB")
		})
	}
}

// buildRtrace builds the program.
func buildRtrace(b *testing.B) string {
	b.Helper()
	program := filepath.Join(b.TempDir(), "rtrace")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	return program
}

// BenchmarkPostprocMemory filters a stream of 10 million calls with 100,000
// blocks live at a time: the peak of the memory in MB.
func BenchmarkPostprocMemory(b *testing.B) {
	program := buildRtrace(b)
	for _, args := range [][]string{{"-l"}, {"-l", "-c"}} {
		b.Run(fmt.Sprint(args), func(b *testing.B) {
			peak := int64(0)
			for b.Loop() {
				cmd := exec.Command(program, append([]string{"postproc"}, args...)...)
				cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
				in, err := cmd.StdinPipe()
				if err != nil {
					b.Fatal(err)
				}
				if err := cmd.Start(); err != nil {
					b.Fatal(err)
				}
				if _, err := writeChurnOf(in, 5_000_000, 100_000, 1<<30); err != nil {
					b.Fatal(err)
				}
				if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
					b.Fatal(err)
				}
				peak = max(peak, peakMemory(cmd.ProcessState))
			}
			b.ReportMetric(float64(peak)/1e6, "peak-MB")
		})
	}
}
