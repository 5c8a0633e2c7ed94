package consumption

// life holds the facts about a live block that are not in its entry in the
// table.
type life struct {
	at, place int64
	context   uint32
}
