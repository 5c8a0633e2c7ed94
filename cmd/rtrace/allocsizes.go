package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"rtrace-bpf/internal/analysis/sizes"
	"rtrace-bpf/internal/cli"
)

// Limits of the lists of alloc-sizes, as in the original.
const (
	histogramBytes = 64 << 10 // least bytes of all allocations of a listed size
	histogramWidth = 60
	wasteBytes     = 4096 // least wasted bytes for a warning, exclusive
	mmapThreshold  = 128  // of glibc, in kB
)

// allocSizesCommand prints which sizes were allocated, like rtrace-alloc-sizes of sp-rtrace.
func allocSizesCommand() command {
	return command{
		name: "alloc-sizes",
		page: cli.Page{
			Summary:  "print which sizes are allocated most, and how much memory bad sizes waste",
			Synopsis: []string{"[flags] [FILE [KB]]"},
			About: "Prints how often each size was allocated, for the sizes that take 64 kB or more in all, and sums. It warns of sizes that waste more than 4096 bytes: " +
				"small sizes, for which an allocator needs as much memory for itself as for the contents, and sizes above KB kilobytes, for which it takes whole pages " +
				"from the system. The default for KB is 128, as in glibc. Sizes that were allocated only once give no warning and do not count for the last line.\n\n" +
				"All allocations of the trace count. With -l, or if the trace was filtered like that, only blocks that are still live at its end count. Memory use " +
				"grows with the number of distinct sizes.",
			Examples: []cli.Example{
				{Does: "examine all allocations of a trace", Command: "rtrace alloc-sizes rtrace-raw-4711-0"},
				{Does: "examine leaks of a program with M_MMAP_THRESHOLD=16384", Command: "rtrace alloc-sizes -l rtrace-raw-4711-0 16"},
			},
		},
		setup: func(f *flags) runFunc {
			var b blockFlags
			b.addAllocations(f.group("Which allocations"))
			b.in.add(f.group("Input"))
			return func(ctx context.Context, s cli.Streams, args []string) error {
				threshold := uint64(mmapThreshold)
				if len(args) == 2 {
					var err error
					if threshold, err = strconv.ParseUint(args[1], 10, 64-10); err != nil {
						return cli.Usagef("%s is not a number of kilobytes; write one such as 128", args[1])
					}
					args = args[:1]
				}
				var counts sizes.Counts
				return b.examineAllocations(ctx, s, "alloc-sizes", args, counts.Add, func() error {
					return writeSizes(s.Out, &counts, threshold<<10)
				})
			}
		},
	}
}

// kilobytes rounds like the original: halves to even numbers.
func kilobytes(bytes float64) uint64 { return uint64(math.RoundToEven(bytes / 1024)) }

// writeSizes prints the report for a limit of the heap in bytes.
func writeSizes(w io.Writer, counts *sizes.Counts, threshold uint64) error {
	list := counts.List()
	var (
		largest, allocs uint64
		bytes, mapped   float64 // may be more than an integer holds
		out             strings.Builder
	)
	for _, n := range list {
		largest = max(largest, n.Allocs)
		allocs += n.Allocs
		bytes += float64(n.Size) * float64(n.Allocs)
	}
	fmt.Fprintf(&out, "\nAlloc size/count histogram of items using >= %d kB (with overhead):\n", histogramBytes>>10)
	for _, n := range list {
		total := (float64(n.Size) + sizes.Overhead) * float64(n.Allocs)
		if total < histogramBytes {
			continue
		}
		hi, lo := bits.Mul64(n.Allocs, histogramWidth)
		bar, _ := bits.Div64(hi, lo, largest)
		fmt.Fprintf(&out, "%8d %s (%d), %d kB\n", n.Size, strings.Repeat("#", int(bar)+1), n.Allocs, kilobytes(total))
	}
	out.WriteString("\nAlloc size warnings:\n")
	for _, x := range counts.Wasted(threshold) {
		if x.Mapped {
			mapped += float64(x.Bytes)
		}
		switch {
		case x.Bytes <= wasteBytes:
		case x.Mapped:
			fmt.Fprintf(&out, "- %d bytes wasted for %d unoptimal %d sized allocs (optimal size = %d B)\n", x.Bytes, x.Allocs, x.Size, x.Best)
		default:
			fmt.Fprintf(&out, "- %d bytes of overhead wasted for %d small %d sized allocs (= %d B)\n", x.Bytes, x.Allocs, x.Size, x.Allocs*x.Size)
		}
	}
	fmt.Fprintf(&out, "\nStatistics:\n- %d allocs\n- %d kB in total\n+ %d kB of estimated alloc overhead\n+ %d kB of mmap()ed allocs alignment overhead\n",
		allocs, kilobytes(bytes), kilobytes(sizes.Overhead*float64(allocs)), kilobytes(mapped))
	_, err := io.WriteString(w, out.String())
	return err
}
