package digest

// life holds the facts about a live block that are not in its entry in the
// table.
type life struct {
	event uint64 // when it began
	time  int64
	made  int64  // time of its last realloc, or of its allocation
	born  uint64 // the position of that in the intervals
	cell  uint32
	nth   uint32 // number in live.Temporary
}
