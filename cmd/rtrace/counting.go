package main

import (
	"fmt"
	"time"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/live"
)

// countList explains the figures of all commands that count blocks.
var countList = cli.List{Title: "Counting", Rows: []cli.ListRow{
	{Name: "live", Text: "allocated and not freed. An allocation at the address of a live block ends that block, because its free is missing"},
	{Name: "unknown", Text: "live when the recording had a gap, such as a pause for --max-rate, in which frees were not recorded. The block stays unknown until it is freed or its address is allocated again. It does not count as live, except in the peak"},
	{Name: "temporary", Text: "freed, or passed to realloc, by the thread that allocated it, before that thread allocates another block of that type; if a trace does not distinguish threads, before any thread does"},
	{Name: "realloc", Text: "one call that ends a block and begins another. If a format has a free and an allocation for it, these count as one call if one follows the other and both have the same function and thread"},
}}

// unknownText describes unknown blocks, and why they are unknown.
func unknownText(a amount) string {
	return fmt.Sprintf("unknown: %s (%s), live when the recording had a gap, in which frees were not recorded", plural(a.Blocks, "block"), plural(a.Bytes, "byte"))
}

// youngObject is live.Young as JSON.
type youngObject struct {
	Doubt    string `json:"doubt"`             // many-from-before, short-recording, mostly-young
	Recorded int64  `json:"recorded"`          // ns from the first call to the last
	Usual    int64  `json:"usual_lifetime"`    // ns that 99 of 100 freed blocks lived at most; 0 if not known
	Younger  uint64 `json:"younger_blocks"`    // live ones that are younger
	Before   uint64 `json:"freed_from_before"` // blocks from before the recording
}

var doubtNames = map[live.Doubt]string{
	live.ManyFromBefore: "many-from-before", live.ShorterThanUsual: "short-recording", live.MostlyYoung: "mostly-young",
}

// youngOf returns nil if there is no doubt.
func youngOf(y *live.Young) *youngObject {
	name, ok := doubtNames[y.Judge()]
	if !ok {
		return nil
	}
	return &youngObject{name, int64(y.Recorded), int64(y.Usual), y.Young, y.Before}
}

// youngText explains why live blocks may be freed soon. It returns "" if there is no such
// reason.
func youngText(y *live.Young) string {
	switch y.Judge() {
	case live.ManyFromBefore:
		return fmt.Sprintf("the recording is short compared with the lifetimes of blocks: in its %s, %s from before it were freed. "+
			"Many of the live blocks may be freed later; record longer", lasting(y.Recorded), plural(y.Before, "block"))
	case live.ShorterThanUsual:
		return fmt.Sprintf("the recording is short compared with the lifetimes of blocks: it lasted %s, and 1 of 100 freed blocks lived about as long. "+
			"Many of the live blocks may be freed later; record longer", lasting(y.Recorded))
	case live.MostlyYoung:
		return fmt.Sprintf("most of these blocks are young: %s %% were allocated in the last %v of the recording, and 99 of 100 freed blocks lived less than that; "+
			"--min-age %v leaves them out", percent(y.Young, y.Live), y.Usual, y.Usual)
	}
	return ""
}

// lasting returns the duration of a recording as text.
func lasting(d time.Duration) string {
	if d == 0 {
		return "time"
	}
	return d.Round(max(1, d/1000)).String()
}
