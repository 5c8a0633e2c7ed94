package consumption

// life is what is kept of a live block beside its entry in the table.
type life struct {
	at, place int64
	context   uint32
}
