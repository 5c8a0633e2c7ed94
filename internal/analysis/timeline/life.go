package timeline

// life holds the facts about a live block that are not in its entry in the
// table.
type life struct {
	event  uint64 // when it began
	time   int64
	thread uint32 // group
	caller uint32 // group
}
