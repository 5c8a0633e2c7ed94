package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/decoder"
	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/symbol"
	"rtrace-bpf/trace"
)

// manyFunctions is a C++ program of n functions that inline others.
func manyFunctions(n int) string {
	var b strings.Builder
	b.WriteString("#include <stdlib.h>\ntemplate<class T> static inline __attribute__((always_inline)) void *make(T n) { return malloc(n); }\nvoid *volatile p;\n")
	for i := range n {
		fmt.Fprintf(&b, "namespace part%d {\n__attribute__((noinline)) int step(int n) {\n\tp = make<long>(n);\n\tp = make<int>(n * %d);\n\treturn n + %d;\n}\n}\n", i%10, i+3, i)
		fmt.Fprintf(&b, "#undef step\n#define step step%d\n", i+1)
	}
	b.WriteString("#undef step\nint main() { return part0::step(1); }\n")
	return b.String()
}

// mapTo rewrites a trace of writeChurn as if the code of f were mapped: its mapping and its
// frames.
func mapTo(w io.Writer, churn io.Reader, path string, f *symbol.File) error {
	in, err := decoder.Open(churn, decoder.Options{})
	if err != nil {
		return err
	}
	out, err := encoder.New(encoder.Default, w, encoder.Options{})
	if err != nil {
		return err
	}
	code := f.Segments()[0]
	var rec trace.Record
	var old trace.Mapping
	for {
		if err := in.ReadRecord(&rec); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		switch rec.Kind {
		case trace.KindMapping:
			old = rec.Mapping
			start := uint64(0x55c9757eb000)
			rec.Mapping = trace.Mapping{Start: start, End: start + (code.FileSize+0xfff)&^0xfff, Path: path}
		case trace.KindCall:
			for i, a := range rec.Call.Stack.Frames {
				rec.Call.Stack.Frames[i] = 0x55c9757eb000 + 0x100 + (a-old.Start)*7919%(code.FileSize-0x200)
			}
		}
		if err := out.WriteRecord(&rec); err != nil {
			return err
		}
	}
	return out.Close()
}

// BenchmarkResolve measures the built program on 1.2 million calls whose frames all have
// functions, lines and inlined functions: millions of calls per second of CPU time (user and
// system), including loading the symbols, and the peak of its memory in MB.
func BenchmarkResolve(b *testing.B) {
	dir := b.TempDir()
	program, traced := filepath.Join(dir, "rtrace"), filepath.Join(dir, "churn")
	source := filepath.Join(dir, "churn.cc")
	if err := os.WriteFile(source, []byte(manyFunctions(2000)), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, args := range [][]string{{"go", "build", "-o", program, "."}, {"g++", "-g", "-O2", "-o", traced, source}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			b.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
	f, err := symbol.Open(traced)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	file, text := filepath.Join(dir, "churn.rtrace"), filepath.Join(dir, "churn.txt")
	mapped, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	calls := 0
	churn, w := io.Pipe()
	go func() {
		var err error
		calls, err = writeChurn(w, 600_000)
		w.CloseWithError(err)
	}()
	if err := errors.Join(mapTo(mapped, churn, traced, f), mapped.Close()); err != nil {
		b.Fatal(err)
	}
	if out, err := exec.Command(program, "convert", "-o", text, "-f", "text", file).CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	for _, args := range [][]string{
		{"resolve", file}, {"resolve", "-telf", file}, {"resolve", text}, {"resolve", "-telf", text}, {"convert", "-ftext", file},
	} {
		b.Run(strings.ReplaceAll(fmt.Sprint(args), dir+"/", ""), func(b *testing.B) {
			var cpu float64
			peak, bytes := int64(0), int64(0)
			for b.Loop() {
				cmd := exec.Command(program, args...)
				counted := new(countingWriter)
				cmd.Stdout, cmd.Stderr = counted, os.Stderr
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				s := cmd.ProcessState
				cpu += (s.UserTime() + s.SystemTime()).Seconds()
				peak, bytes = max(peak, peakMemory(s)), counted.n
			}
			b.ReportMetric(float64(calls)*float64(b.N)/cpu/1e6, "Mcalls/cpu-s")
			b.ReportMetric(float64(peak)/1e6, "peak-MB")
			b.ReportMetric(float64(bytes)/1e6, "out-MB")
		})
	}
}

// countingWriter counts the bytes that it drops.
type countingWriter struct{ n int64 }

func (c *countingWriter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return len(b), nil
}
