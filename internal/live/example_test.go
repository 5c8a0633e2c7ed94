package live_test

import (
	"fmt"

	"rtrace-bpf/internal/live"
	"rtrace-bpf/trace"
)

// The rule of all commands about what is live.
func ExampleBlocks() {
	b := live.NewBlocks()
	for _, r := range []trace.Record{
		{Kind: trace.KindCall, PID: 1, Call: trace.Call{Op: trace.OpAlloc, ID: 0x1000, Size: 100}},
		{Kind: trace.KindCall, PID: 1, Call: trace.Call{Op: trace.OpAlloc, ID: 0x2000, Size: 30}},
		{Kind: trace.KindCall, PID: 1, Call: trace.Call{Op: trace.OpMove, OldID: 0x1000, ID: 0x3000, Size: 200}}, // realloc
		{Kind: trace.KindCall, PID: 1, Call: trace.Call{Op: trace.OpFree, ID: 0x4000}},                           // from before the recording
		{Kind: trace.KindLost, PID: 1, Lost: trace.Lost{Count: 1, Reason: trace.LostPaused}},                     // frees were not seen
		{Kind: trace.KindCall, PID: 1, Call: trace.Call{Op: trace.OpAlloc, ID: 0x5000, Size: 7}},
	} {
		b.Add(&r)
	}
	blocks, bytes := b.Live()
	fmt.Printf("live: %d block, %d bytes\n", blocks, bytes)
	blocks, bytes = b.Unknown()
	fmt.Printf("unknown: %d blocks, %d bytes\n", blocks, bytes)
	fmt.Println("unmatched frees:", b.Unmatched())
	// Output:
	// live: 1 block, 7 bytes
	// unknown: 2 blocks, 230 bytes
	// unmatched frees: 1
}

// Blocks with a payload of one's own, here the number of the call that made them.
func ExampleTable() {
	t := live.New()
	const memory = 1
	t.Insert(memory, 0x1000, 100, 1)
	t.Insert(memory, 0x2000, 30, 2)
	if e, ok := t.Remove(memory, 0x1000); ok {
		fmt.Println("call", e.Value, "made the block of", e.Size, "bytes")
	}
	fmt.Println("left:", t.Len(), "block,", t.Bytes(), "bytes")
	// Output:
	// call 1 made the block of 100 bytes
	// left: 1 block, 30 bytes
}
