package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"rtrace-bpf/internal/binio"
)

// writeMpatrol writes a trace of mpatrol with n events of a program that allocates and
// frees: 1 of its 50 blocks is never freed, and the others within the next 1000. Addresses
// have 47 bits, like those of real programs, and events name one of 30 functions.
func writeMpatrol(w io.Writer, n int) error {
	x := uint64(1)
	random := func(n uint64) uint64 {
		x = x*6364136223846793005 + 1442695040888963407
		return x >> 33 % n
	}
	var (
		b      = []byte(mtrcFile())[:20]
		window [1000]uint64
		named  [2][31]bool
	)
	source := func() {
		b = binio.AppendUleb128(b, 4711)
		for kind := range 2 {
			id := byte(random(30) + 1)
			if named[kind][id] {
				b = append(b, id)
				continue
			}
			named[kind][id] = true
			b = fmt.Appendf(append(b, id|0x80), "function_or_file_%d\x00", id)
		}
		b = binio.AppendUleb128(b, random(3000))
	}
	out := bufio.NewWriterSize(w, 1<<16)
	for i, index := 0, uint64(100); i < n; index++ {
		b = append(b, 'A')
		b = binio.AppendUleb128(b, index)
		b = binio.AppendUleb128(b, 0x7f0012340010+random(1<<20)*16)
		b = binio.AppendUleb128(b, random(1000))
		source()
		i++
		at := random(uint64(len(window)))
		if window[at] != 0 && i < n {
			b = binio.AppendUleb128(append(b, 'F'), window[at])
			source()
			window[at] = 0
			i++
		}
		if index%50 != 0 {
			window[at] = index
		}
		if _, err := out.Write(b); err != nil {
			return err
		}
		b = b[:0]
	}
	if _, err := out.WriteString("MTRC"); err != nil {
		return err
	}
	return out.Flush()
}

// BenchmarkMptrace measures the built program on 5 million events: millions of
// events per second of CPU time (user and system), and the peak of its memory in
// MB.
func BenchmarkMptrace(b *testing.B) {
	const events = 5_000_000
	dir := b.TempDir()
	program := filepath.Join(dir, "rtrace")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		b.Fatalf("%v\n%s", err, out)
	}
	file := filepath.Join(dir, "mpatrol.trace")
	f, err := os.Create(file)
	if err != nil {
		b.Fatal(err)
	}
	if err := writeMpatrol(f, events); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	for _, args := range [][]string{{}, {"-v"}, {"-v", "-s"}, {"-H", os.DevNull}, {"--legacy"}, {"--legacy", "-v", "-s"}} {
		b.Run(fmt.Sprint(args), func(b *testing.B) {
			var cpu float64
			peak := int64(0)
			for b.Loop() {
				cmd := exec.Command(program, append([]string{"mptrace", file}, args...)...)
				cmd.Stdout, cmd.Stderr = io.Discard, os.Stderr
				if err := cmd.Run(); err != nil {
					b.Fatal(err)
				}
				s := cmd.ProcessState
				cpu += (s.UserTime() + s.SystemTime()).Seconds()
				peak = max(peak, peakMemory(s))
			}
			b.ReportMetric(events*float64(b.N)/cpu/1e6, "Mevents/cpu-s")
			b.ReportMetric(float64(peak)/1e6, "peak-MB")
		})
	}
}
