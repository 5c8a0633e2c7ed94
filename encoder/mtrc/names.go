package mtrc

import (
	"math/bits"
	"strings"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// names is the table of one sort of names, as the library keeps it: a name that
// is in it is written as its id; another one takes the next id that was never
// used, or else the id that was used least recently, and is written with it.
type names struct {
	used   int // ids 1 to used are in use
	last   int // position of the name that was written last
	clock  uint64
	hashes [wire.Names]uint64
	texts  [wire.Names]string
	stamps [wire.Names]uint64 // when each was written last
}

// clear forgets the names, as a new stream does.
func (t *names) clear() { *t = names{} }

// append appends a name, of which an empty one is none, and says whether it had
// to be cut.
func (t *names) append(b []byte, text string) (_ []byte, cut bool) {
	if text == "" {
		return append(b, 0), false
	}
	if t.used > 0 && t.texts[t.last] == text {
		// It is the most recent one already.
		return append(b, byte(t.last+1)), false
	}
	h := hash(text)
	for i, other := range t.hashes[:t.used] {
		if other == h && t.texts[i] == text {
			t.use(i)
			return append(b, byte(i+1)), false
		}
	}
	if short := fit(text); short != text {
		b, _ = t.append(b, short) // the table has names as they are written
		return b, true
	}
	i := t.slot()
	t.hashes[i], t.texts[i] = h, text
	t.use(i)
	b = append(b, byte(i+1)|wire.Define)
	b = append(b, text...)
	return append(b, 0), false
}

// slot returns the position for a new name.
func (t *names) slot() int {
	if t.used < wire.Names {
		t.used++
		return t.used - 1
	}
	oldest := 0
	for i, stamp := range t.stamps {
		if stamp < t.stamps[oldest] {
			oldest = i
		}
	}
	return oldest
}

// use makes the name at a position the most recent one.
func (t *names) use(i int) {
	t.clock++
	t.stamps[i] = t.clock
	t.last = i
}

// fit cuts a name to what the format can hold.
func fit(text string) string {
	if len(text) > wire.MaxName {
		text = text[:wire.MaxName]
	}
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// hash tells most names apart at a glance.
func hash(s string) uint64 {
	h := uint64(len(s))
	for len(s) >= 8 {
		h = mix(h ^ le64(s))
		s = s[8:]
	}
	var rest uint64
	for i := range len(s) {
		rest = rest<<8 | uint64(s[i])
	}
	return mix(h ^ rest)
}

func mix(v uint64) uint64 {
	hi, lo := bits.Mul64(v^0x9e3779b97f4a7c15, 0xd6e8feb86659fd93)
	return hi ^ lo
}

func le64(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
		uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}
