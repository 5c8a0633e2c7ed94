package sptext

import "slices"

// stacks keeps the texts of recently written stacks, because most calls come from few
// places.
type stacks struct {
	slots []stackText // by hash; nil until the first stack
}

type stackText struct {
	frames []uint64
	text   []byte
}

const (
	stackSlots = 1 << 10
	// Larger stacks are not kept. So the slots take at most 1.5 MB.
	maxKept = 64
)

// append appends frames without names, one per line.
func (s *stacks) append(b []byte, frames []uint64) []byte {
	if len(frames) == 0 || len(frames) > maxKept {
		return appendFrames(b, frames)
	}
	if s.slots == nil {
		s.slots = make([]stackText, stackSlots)
	}
	var h uint64
	for i, f := range frames {
		h += f * (0x9e3779b97f4a7c15 + 2*uint64(i)) // an odd factor
	}
	slot := &s.slots[h>>54]
	if !slices.Equal(slot.frames, frames) {
		slot.frames = append(slot.frames[:0], frames...)
		slot.text = appendFrames(slot.text[:0], frames)
	}
	return append(b, slot.text...)
}

func appendFrames(b []byte, frames []uint64) []byte {
	for _, f := range frames {
		b = append(appendHex(append(b, "\t0x"...), f), '\n')
	}
	return b
}
