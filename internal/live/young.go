package live

import "time"

// Young is what says whether blocks that are live at the end may well be freed soon.
type Young struct {
	Recorded time.Duration // from the first call to the last; 0 if the trace has no times
	Usual    time.Duration // [Lifetimes.Usual]
	Live     uint64        // blocks that are live at the end
	Young    uint64        // those of them that are younger than Usual
	Before   uint64        // frees of blocks from before the recording; 0 if not known
}

// Doubt is why live blocks may be freed soon.
type Doubt uint8

// The doubts, the strongest first.
const (
	NoDoubt Doubt = iota
	// ManyFromBefore: for two blocks that are live, at least one from before the
	// recording was freed in it, and 100 or more in all. So blocks live longer than the
	// recording lasted, and it saw the ends of few.
	ManyFromBefore
	// ShorterThanUsual: most live blocks are younger than Usual, which is no less than
	// Recorded.
	ShorterThanUsual
	// MostlyYoung: most live blocks are younger than Usual.
	MostlyYoung
)

// Judge returns the first doubt that holds.
func (y *Young) Judge() Doubt {
	switch {
	case y.Live == 0:
	case y.Before >= enough && y.Before >= (y.Live+1)/2:
		return ManyFromBefore
	case y.Recorded == 0 || y.Usual == 0 || y.Young <= y.Live/2:
	case y.Usual >= y.Recorded:
		return ShorterThanUsual
	default:
		return MostlyYoung
	}
	return NoDoubt
}
