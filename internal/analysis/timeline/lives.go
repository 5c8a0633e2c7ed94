package timeline

// life is what is kept of a live block beside its entry in the table.
type life struct {
	event  uint64 // when it began
	time   int64
	thread uint32 // group
	caller uint32 // group
}
