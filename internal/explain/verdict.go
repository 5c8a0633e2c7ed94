package explain

import (
	"cmp"
	"fmt"
	"slices"

	"rtrace-bpf/internal/heap"
	"rtrace-bpf/internal/report/figure"
)

// Topic is what a verdict is about.
type Topic string

// The topics of verdicts.
const (
	AboutLive      Topic = "live"
	AboutHoles     Topic = "fragmentation"
	AboutPinned    Topic = "pinned"
	AboutArenas    Topic = "arenas"
	AboutCaches    Topic = "thread_caches"
	AboutTop       Topic = "top"
	AboutFiles     Topic = "page_cache"
	AboutShared    Topic = "shared_memory"
	AboutStacks    Topic = "stacks"
	AboutManaged   Topic = "managed_heap"
	AboutAllocator Topic = "allocator"
	AboutMappings  Topic = "mappings"
	AboutCode      Topic = "code"
	AboutSwap      Topic = "swap"
	AboutHugetlb   Topic = "hugetlb"
	AboutUnknown   Topic = "unknown"
)

// Verdict is what a document means: a sentence that quotes its figures, and what to do.
type Verdict struct {
	Topic  Topic   `json:"topic"`
	Bytes  uint64  `json:"bytes"` // resident memory that it explains; of swap and hugetlb, memory that is not part of RSS
	Share  float64 `json:"share"` // of RSS, 0 to 1; of swap and hugetlb, of RSS and that memory together
	Text   string  `json:"text"`
	Advice string  `json:"advice"` // names the figure that it rests on
}

// A verdict is given for a topic from these shares of the resident memory on.
const (
	large = 0.2     // of memory that is in use
	waste = 0.1     // of memory that could be given back
	least = 1 << 20 // bytes; less is never waste
)

// Judge sets d.Verdicts from the rows and the heap. The most important verdict is the first. A
// document with resident memory has at least one.
func (d *Document) Judge() {
	j := judge{d: d, pid: d.Process.PID}
	d.Verdicts = []Verdict{}
	for _, about := range []func(*judge) (Verdict, bool){
		(*judge).live, (*judge).pinned, (*judge).holes, (*judge).arenas, (*judge).caches, (*judge).top,
		(*judge).files, (*judge).shared, (*judge).stacks, (*judge).managed, (*judge).allocator,
		(*judge).mappings, (*judge).swap, (*judge).hugetlb, (*judge).unknown,
	} {
		if v, ok := about(&j); ok {
			d.Verdicts = append(d.Verdicts, v)
		}
	}
	slices.SortStableFunc(d.Verdicts, func(a, b Verdict) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if len(d.Verdicts) == 0 {
		if v, ok := j.rest(); ok {
			d.Verdicts = append(d.Verdicts, v)
		}
	}
}

// judge decides about one document.
type judge struct {
	d   *Document
	pid int
}

// share returns the part of the process's resident memory that is n bytes.
func (j *judge) share(n uint64) float64 { return part(n, j.d.Resident) }

func part(n, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

// of returns "61 % of RSS (495 MiB)".
func (j *judge) of(n uint64) string {
	return fmt.Sprintf("%s of RSS (%s)", figure.Percent(min(1, j.share(n))), figure.Bytes(n))
}

// verdict returns a verdict about n bytes if they are at least a share of the resident memory.
func (j *judge) verdict(topic Topic, n uint64, from float64, text, advice string) (Verdict, bool) {
	if n == 0 || j.share(n) < from || from == waste && n < least {
		return Verdict{}, false
	}
	return Verdict{Topic: topic, Bytes: n, Share: min(1, j.share(n)), Text: text, Advice: advice}, true
}

func (j *judge) live() (Verdict, bool) {
	r := j.d.row(Live)
	rest := ""
	if absent := r.Size - min(r.Size, r.Resident); absent > r.Size/10 {
		rest = fmt.Sprintf("; of the %s allocated, %s is not resident", figure.Bytes(r.Size), figure.Bytes(absent))
	}
	return j.verdict(AboutLive, r.Resident, large,
		fmt.Sprintf("%s is in %s live blocks of malloc: the program has not freed them%s", j.of(r.Resident), figure.Count(r.Count), rest),
		fmt.Sprintf("a leak, if these %s grow: rtrace-bpf explain -p %d --watch; who allocates them: rtrace-bpf top -p %d", figure.Bytes(r.Size), j.pid, j.pid))
}

// biggest returns the hole with the most resident memory of all arenas, among those that accept
// accepts.
func (j *judge) biggest(accept func(heap.Hole) bool) (hole heap.Hole, found bool) {
	if j.d.Heap == nil {
		return heap.Hole{}, false
	}
	for _, a := range j.d.Heap.Arenas {
		for _, h := range a.Holes {
			if accept(h) && h.Resident > hole.Resident {
				hole, found = h, true
			}
		}
	}
	return hole, found
}

// pins reports whether little memory above a hole keeps it from being given back.
func pins(h heap.Hole) bool {
	const little = 64
	return h.Above.Blocks > 0 && h.Above.Bytes <= h.Bytes/little
}

func (j *judge) pinned() (Verdict, bool) {
	h, ok := j.biggest(pins)
	if !ok {
		return Verdict{}, false
	}
	blocks := "one live block"
	if h.Above.Blocks > 1 {
		blocks = figure.Count(h.Above.Blocks) + " live blocks"
	}
	return j.verdict(AboutPinned, h.Resident, waste,
		fmt.Sprintf("%s is one hole below %s of %s in all, at the end of an arena: a heap shrinks only from its end", j.of(h.Resident), blocks, figure.Bytes(h.Above.Bytes)),
		fmt.Sprintf("malloc_trim(0) gives the %s of the hole back; allocate what stays (the block on top of it has %s) before what goes", figure.Bytes(h.Resident), figure.Bytes(h.Next)))
}

func (j *judge) holes() (Verdict, bool) {
	r := j.d.row(Free)
	free := r.Resident
	if v, many := j.arenas(); many && v.Bytes >= free/4*3 {
		return Verdict{}, false // that verdict is about most of it
	}
	text := ""
	if h, ok := j.biggest(func(heap.Hole) bool { return true }); ok {
		if h.Bytes >= least {
			text = fmt.Sprintf("; the largest has %s, and %s of live blocks above it", figure.Bytes(h.Bytes), figure.Bytes(h.Above.Bytes))
		}
		if _, pinned := j.pinned(); pinned && 2*h.Resident > free {
			return Verdict{}, false // that hole has a verdict of its own
		}
	}
	return j.verdict(AboutHoles, free, waste,
		fmt.Sprintf("%s is in %s free pieces between live blocks of malloc (fragmentation)%s", j.of(free), figure.Count(r.Count), text),
		fmt.Sprintf("malloc_trim(0) gives back the whole pages of these %s; if they come back, record the process and try another malloc: rtrace replay shows what it would give", figure.Bytes(free)))
}

// manyArenas is how many arenas are worth a word.
const manyArenas = 8

func (j *judge) arenas() (Verdict, bool) {
	if j.d.Heap == nil || len(j.d.Heap.Arenas) < manyArenas {
		return Verdict{}, false
	}
	var idle, system uint64
	for _, a := range j.d.Heap.Arenas {
		if !a.Main {
			idle += a.Free.Resident + a.Top.Resident + a.Fast.Resident + a.Own.Resident
			system += a.System
		}
	}
	n := len(j.d.Heap.Arenas)
	return j.verdict(AboutArenas, idle, waste,
		fmt.Sprintf("%s is free memory of %d arenas besides the main one, which took %s from the kernel", j.of(idle), n-1, figure.Bytes(system)),
		fmt.Sprintf("start it with MALLOC_ARENA_MAX=2, or another small number, instead of %d arenas: threads then share their free memory, and wait for each other more often", n))
}

func (j *judge) caches() (Verdict, bool) {
	r := j.d.row(Cached)
	return j.verdict(AboutCaches, r.Resident, waste,
		fmt.Sprintf("%s is in %s freed blocks that the caches of threads keep", j.of(r.Resident), figure.Count(r.Count)),
		fmt.Sprintf("make the caches smaller than these %s with GLIBC_TUNABLES=glibc.malloc.tcache_count=2, or use fewer threads (%d now)", figure.Bytes(r.Size), j.d.Process.Threads))
}

func (j *judge) top() (Verdict, bool) {
	r := j.d.row(Top)
	if _, many := j.arenas(); many {
		return Verdict{}, false // contains it
	}
	return j.verdict(AboutTop, r.Resident, waste,
		fmt.Sprintf("%s is free memory at the ends of malloc's arenas", j.of(r.Resident)),
		fmt.Sprintf("malloc_trim(0) gives these %s back; a smaller M_TRIM_THRESHOLD (MALLOC_TRIM_THRESHOLD_) does it each time", figure.Bytes(r.Resident)))
}

func (j *judge) files() (Verdict, bool) {
	r := j.d.row(Files)
	return j.verdict(AboutFiles, r.Resident, large,
		fmt.Sprintf("%s is page cache of mapped files%s: RSS counts it, but the kernel takes it back when memory is short", j.of(r.Resident), largest(r)),
		fmt.Sprintf("no leak; a limit of a cgroup counts these %s, too: madvise(MADV_DONTNEED) or munmap drops them from RSS", figure.Bytes(r.Resident)))
}

// largest returns the name of a row's largest part with its size.
func largest(r Row) string {
	if len(r.Parts) == 0 {
		return ""
	}
	return fmt.Sprintf(" (largest: %s, %s)", r.Parts[0].Name, figure.Bytes(r.Parts[0].Resident))
}

func (j *judge) shared() (Verdict, bool) {
	r := j.d.row(SharedMemory)
	return j.verdict(AboutShared, r.Resident, large,
		fmt.Sprintf("%s is shared memory or files in tmpfs%s: it stays until the last user unmaps it and the file is removed", j.of(r.Resident), largest(r)),
		fmt.Sprintf("see who else uses these %s: lsof or ipcs -m; %s of them are mapped by other processes, too", figure.Bytes(r.Resident), figure.Bytes(r.Shared)))
}

// manyStacks is how many stacks are worth a word, with a smaller share.
const manyStacks = 500

func (j *judge) stacks() (Verdict, bool) {
	r := j.d.row(Stacks)
	from := large
	if r.Count >= manyStacks {
		from = waste
	}
	return j.verdict(AboutStacks, r.Resident, from,
		fmt.Sprintf("%s is stacks: %s of them for %s threads, %s each on average", j.of(r.Resident), figure.Count(r.Count), figure.Count(uint64(j.d.Process.Threads)), figure.Bytes(r.Resident/max(1, r.Count))),
		fmt.Sprintf("use fewer than %s threads (a pool), or look for deep recursion and large local variables; a smaller stack (ulimit -s, pthread_attr_setstacksize) changes only the %s of addresses", figure.Count(uint64(j.d.Process.Threads)), figure.Bytes(r.Size)))
}

func (j *judge) managed() (Verdict, bool) {
	heap := j.d.row(Managed)
	own := j.d.row(Runtime)
	n := heap.Resident + own.Resident
	r := heap
	if own.Resident > heap.Resident {
		r = own
	}
	return j.verdict(AboutManaged, n, large,
		fmt.Sprintf("%s belongs to a language's runtime: %s (%s)", j.of(n), r.What, figure.Bytes(r.Resident)),
		fmt.Sprintf("ask the runtime about these %s: %s; whether they grow: rtrace-bpf explain -p %d --watch", figure.Bytes(n), toolOf(j.d.Process.Runtimes), j.pid))
}

// tools are what shows the objects in the heap of a runtime.
var tools = map[string]string{
	"go":     "go tool pprof http://HOST:PORT/debug/pprof/heap",
	"jvm":    "jcmd PID GC.heap_info, jcmd PID VM.native_memory (with -XX:NativeMemoryTracking=summary), jmap -histo PID",
	"v8":     "node --inspect and a heap snapshot, or process.memoryUsage()",
	"dotnet": "dotnet-counters monitor and dotnet-gcdump, or rtrace-bpf --dotnet",
	"python": "tracemalloc, or sys._debugmallocstats()",
}

func toolOf(runtimes []string) string {
	for _, r := range runtimes {
		if t, ok := tools[r]; ok {
			return t
		}
	}
	return "its own tools"
}

// statistics is where allocators show how much of their memory is live, and how they give back
// what is not.
var statistics = map[string]string{
	"jemalloc": "malloc_stats_print, mallctl stats.allocated, or INFO memory of redis (allocator_allocated); what is more is fragmentation, or pages kept for reuse, which MALLOC_CONF=dirty_decay_ms:0 or MEMORY PURGE of redis gives back",
	"tcmalloc": "MallocExtension::GetStats; MallocExtension::ReleaseFreeMemory gives free pages back",
	"mimalloc": "mi_stats_print; mi_collect(true) gives free pages back",
}

func (j *judge) allocator() (Verdict, bool) {
	r := j.d.row(Allocator)
	ask, known := statistics[r.What]
	if !known {
		ask = "the allocator's own statistics"
	}
	return j.verdict(AboutAllocator, r.Resident, large,
		fmt.Sprintf("%s belongs to %s, live and free blocks together, of %s mapped", j.of(r.Resident), r.What, figure.Bytes(r.Size)),
		fmt.Sprintf("who allocates these %s: rtrace-bpf top -p %d; how much of them is live: %s", figure.Bytes(r.Resident), j.pid, ask))
}

func (j *judge) mappings() (Verdict, bool) {
	r := j.d.row(Anonymous)
	return j.verdict(AboutMappings, r.Resident, large,
		fmt.Sprintf("%s is in %s anonymous mappings that are not malloc's%s", j.of(r.Resident), figure.Count(r.Count), largest(r)),
		fmt.Sprintf("who maps these %s: record the calls of mmap with rtrace-bpf -p %d -e mmap, then rtrace leaks", figure.Bytes(r.Resident), j.pid))
}

func (j *judge) swap() (Verdict, bool) {
	n := j.d.Swap
	share := part(n, j.d.Resident+n)
	if n < least || share < waste {
		return Verdict{}, false
	}
	var most Row
	for _, r := range j.d.Rows {
		if r.Swap > most.Swap {
			most = r
		}
	}
	return Verdict{
		Topic: AboutSwap, Bytes: n, Share: share,
		Text: fmt.Sprintf("%s is swapped out and not part of RSS, which is %s of both together; the largest part is %s (%s)",
			figure.Bytes(n), figure.Percent(share), most.What, figure.Bytes(most.Swap)),
		Advice: fmt.Sprintf("add these %s to RSS when you compare with what the program allocated; explain does not read them, because that would bring them back, so the rows of malloc are without them", figure.Bytes(n)),
	}, true
}

func (j *judge) hugetlb() (Verdict, bool) {
	n := j.d.Hugetlb
	share := part(n, j.d.Resident+n)
	if n < least || share < waste {
		return Verdict{}, false
	}
	return Verdict{
		Topic: AboutHugetlb, Bytes: n, Share: share,
		Text: fmt.Sprintf("%s is in pages of hugetlbfs and not part of RSS, which is %s of both together", figure.Bytes(n), figure.Percent(share)),
		Advice: fmt.Sprintf("add these %s to RSS; who maps them: rtrace-bpf -p %d -e mmap. If malloc does (glibc.malloc.hugetlb=2 in GLIBC_TUNABLES), run the program without that to see its blocks",
			figure.Bytes(n), j.pid),
	}, true
}

func (j *judge) unknown() (Verdict, bool) {
	r := j.d.row(Unread)
	other := j.d.row(Other)
	n := r.Resident + other.Resident
	const much = 0.05
	why := r.Why
	if why == "" {
		why = "it was not recognised"
	}
	return j.verdict(AboutUnknown, n, much,
		fmt.Sprintf("%s could not be explained: %s", j.of(n), why),
		fmt.Sprintf("run it again: the process may have changed while these %s were read; if the time was over, with a larger --max-walk", figure.Bytes(n)))
}

// rest returns a verdict about the largest row of a process that has no other.
func (j *judge) rest() (Verdict, bool) {
	if len(j.d.Rows) == 0 {
		return Verdict{}, false
	}
	r := j.d.Rows[0]
	return Verdict{
		Topic: AboutCode, Bytes: r.Resident, Share: min(1, j.share(r.Resident)),
		Text:   fmt.Sprintf("no single cause: the largest part of %s RSS is %s, %s%s", figure.Bytes(j.d.Resident), r.What, j.of(r.Resident), largest(r)),
		Advice: fmt.Sprintf("watch what grows from these %s: rtrace-bpf explain -p %d --watch", figure.Bytes(j.d.Resident), j.pid),
	}, true
}
