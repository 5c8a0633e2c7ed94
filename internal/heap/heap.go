// Package heap is the state of the heap of a process at one time, as plain data: arenas, amounts of
// live and free blocks, holes. Package internal/linux/glibcheap reads it, package internal/explain
// explains it.
package heap

// Amount is a number of blocks of malloc. Bytes include malloc's headers.
type Amount struct {
	Blocks   uint64 `json:"blocks"`
	Bytes    uint64 `json:"bytes"`
	Resident uint64 `json:"resident"`
}

// Hole is free memory between live blocks of an arena.
type Hole struct {
	Address  uint64 `json:"address"`
	Bytes    uint64 `json:"bytes"`
	Resident uint64 `json:"resident"`
	// What is above it in the same piece of memory. A heap shrinks only from its end.
	Above Amount `json:"above"`
	// Next is the size in bytes of the block directly above it.
	Next uint64 `json:"next"`
}

// Arena is an arena of the GNU C library.
type Arena struct {
	Address uint64 `json:"address"`
	Main    bool   `json:"main"`
	Heaps   int    `json:"heaps"`  // pieces of memory
	System  uint64 `json:"system"` // what it got from the kernel, by its own count
	Live    Amount `json:"live"`
	Free    Amount `json:"free"`
	Cached  Amount `json:"cached"`
	Fast    Amount `json:"fast"`
	Top     Amount `json:"top"`
	Own     Amount `json:"own"`
	Unread  Amount `json:"unread"`
	Why     string `json:"why"`   // why blocks are unread
	Holes   []Hole `json:"holes"` // the largest ones first; never nil
}

// Heap is the state of the GNU C library's malloc.
type Heap struct {
	Arenas []Arena `json:"arenas"` // the main one first; never nil
	Mapped Amount  `json:"mapped"` // live blocks with mappings of their own
	// CountedMapped and CountedBlocks are the library's own count of them, if Counted.
	Counted       bool   `json:"counted"`
	CountedBlocks uint64 `json:"counted_blocks"`
	CountedMapped uint64 `json:"counted_mapped"`
	ThreadCaches  int    `json:"thread_caches"` // that hold blocks
	// Why is the reason why there are no arenas, or why something is missing.
	Why   string `json:"why"`
	Check *Check `json:"check"` // nil without debugging symbols
}

// Check compares the heap with the library's own variables, which debugging symbols name.
type Check struct {
	System       uint64 `json:"system"`        // by the variables
	Free         uint64 `json:"free"`          // by the library's lists: mallinfo's fordblks
	WalkedSystem uint64 `json:"walked_system"` // the same by reading blocks
	WalkedFree   uint64 `json:"walked_free"`
	Why          string `json:"why"` // why there is no comparison
}
