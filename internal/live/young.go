package live

import "time"

// Young holds the figures that show whether blocks live at the end may well be
// freed soon.
type Young struct {
	Recorded time.Duration // from the first call to the last; 0 if the trace has no times
	Usual    time.Duration // [Lifetimes.Usual]
	Live     uint64        // blocks live at the end
	Young    uint64        // live blocks that are younger than Usual
	Before   uint64        // frees of blocks from before the recording; 0 if unknown
}

// Doubt is a reason why live blocks may be freed soon.
type Doubt uint8

// The doubts, the strongest first.
const (
	NoDoubt Doubt = iota
	// ManyFromBefore: at least 100 blocks from before the recording were freed
	// in it, and at least one for every two live blocks. Blocks therefore live
	// longer than the recording, which contains the ends of only a few.
	ManyFromBefore
	// ShorterThanUsual: most live blocks are younger than Usual, and Usual is
	// at least Recorded.
	ShorterThanUsual
	// MostlyYoung: most live blocks are younger than Usual.
	MostlyYoung
)

// Judge returns the first doubt that applies.
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
