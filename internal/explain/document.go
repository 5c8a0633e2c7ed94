package explain

import (
	"time"

	"rtrace-bpf/internal/heap"
)

// Kind is what the memory of a row is used for.
type Kind string

// The kinds of rows. Those of malloc are known for the GNU C library only.
const (
	Program      Kind = "program"       // code and data of the program's file
	Libraries    Kind = "libraries"     // code and data of libraries
	Files        Kind = "files"         // page cache of other mapped files
	SharedMemory Kind = "shared_memory" // tmpfs, memfd, System V and anonymous shared mappings
	Stacks       Kind = "stacks"        // stacks of threads
	Live         Kind = "malloc_live"   // blocks that the program has not freed
	Free         Kind = "malloc_free"   // free blocks between live ones
	Cached       Kind = "malloc_cached" // free blocks in the caches of threads
	Fast         Kind = "malloc_fast"   // free blocks in fast bins
	Top          Kind = "malloc_top"    // free memory at the end of arenas
	Own          Kind = "malloc_own"    // malloc's own structures
	Unread       Kind = "malloc_unread" // memory of arenas whose blocks could not be read
	Allocator    Kind = "allocator"     // mappings of another allocator, live and free together
	Managed      Kind = "managed_heap"  // the heap of a language's runtime
	Runtime      Kind = "runtime"       // other memory of a language's runtime
	Break        Kind = "program_break" // memory of brk that no known allocator uses
	Anonymous    Kind = "anonymous"     // mappings of the program itself
	Hugetlb      Kind = "hugetlb"       // pages of hugetlbfs, which are not resident for the kernel
	Kernel       Kind = "kernel"        // pages that the kernel maps: vdso and others
	Other        Kind = "other"         // everything else: devices and what was not recognised
)

// Row is memory of one kind. Sizes are in bytes.
type Row struct {
	Kind     Kind   `json:"kind"`
	What     string `json:"what"` // for people
	Resident uint64 `json:"resident"`
	Shared   uint64 `json:"shared"`     // part of Resident that other processes map, too
	Size     uint64 `json:"size"`       // allocated or mapped, whether resident or not
	Swap     uint64 `json:"swap"`       // swapped out, not part of Resident
	Huge     uint64 `json:"huge"`       // part of Resident in transparent huge pages
	Count    uint64 `json:"count"`      // of Unit
	Unit     string `json:"unit"`       // "blocks", "mappings" or "stacks"
	Likely   bool   `json:"likely"`     // recognised by signs that may mislead
	Why      string `json:"why"`        // how it was recognised, if Likely; or why it is unknown
	Parts    []Part `json:"parts"`      // the largest parts; never nil
	More     int    `json:"more_parts"` // parts that are not listed
}

// Part is a part of a row: a file, a library, a mapping.
type Part struct {
	Name     string `json:"name"`
	Resident uint64 `json:"resident"`
}

// Process is the process that is explained.
type Process struct {
	PID     int    `json:"pid"`
	NSPID   int    `json:"ns_pid"` // its ID in its own PID namespace
	Name    string `json:"name"`
	Exe     string `json:"exe"`
	Bits    int    `json:"bits"`
	Threads int    `json:"threads"`
	// Runtimes and Allocators name what was recognised, such as "jvm" and "glibc".
	Runtimes   []string `json:"runtimes"`
	Allocators []string `json:"allocators"`
}

// Document explains the resident memory of one process at one time. Sizes are in bytes.
type Document struct {
	Time         time.Time  `json:"time"`
	Took         float64    `json:"took_seconds"`
	Process      Process    `json:"process"`
	Verdicts     []Verdict  `json:"verdicts"` // never nil
	Resident     uint64     `json:"resident"` // by smaps_rollup, after the rows were read
	Before       uint64     `json:"resident_before"`
	Sum          uint64     `json:"sum"`          // of the rows
	Proportional uint64     `json:"proportional"` // Pss: shared pages divided by the processes that map them
	Swap         uint64     `json:"swap"`
	Hugetlb      uint64     `json:"hugetlb"`
	PageTables   uint64     `json:"page_tables"`
	Rows         []Row      `json:"rows"` // the largest first; never nil
	Heap         *heap.Heap `json:"heap"` // nil if the process does not use the GNU C library
	Notes        []string   `json:"notes"`
	Drift        *Drift     `json:"drift"` // since an earlier reading; nil for none
}

// Drift is how the memory changed since an earlier reading.
type Drift struct {
	Seconds  float64  `json:"seconds"`
	Resident int64    `json:"resident"`
	Rows     []Change `json:"rows"` // that changed, the largest change first; never nil
}

// Change is how a row changed.
type Change struct {
	Kind     Kind   `json:"kind"`
	What     string `json:"what"`
	Resident int64  `json:"resident"`
	Size     int64  `json:"size"`
	Count    int64  `json:"count"`
}

// row returns the row of a kind with the most resident memory, or an empty one.
func (d *Document) row(kind Kind) Row {
	for _, r := range d.Rows {
		if r.Kind == kind {
			return r
		}
	}
	return Row{Kind: kind}
}

// AddsUp reports whether the rows add up to the resident memory, give or take 2 %, and what
// the resident memory itself changed in the meantime.
func (d *Document) AddsUp() bool {
	const part = 50
	low, high := min(d.Before, d.Resident), max(d.Before, d.Resident)
	return d.Sum+low/part >= low && d.Sum <= high+high/part
}
