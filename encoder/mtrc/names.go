package mtrc

import (
	"math/bits"
	"strings"

	wire "rtrace-bpf/internal/wire/mtrc"
)

// names is the table of one sort of names, as the library keeps it. A name in the table
// is written as its id. A new name takes the next id that was never used, or else the
// id that was used least recently, and is written with its text.
//
// Ids are positions plus one. Names are found by their hash; buckets show quickly that
// a name is not in the table.
type names struct {
	used  int // positions 0 to used-1 are in use
	first uint8
	last  uint8                 // most and least recently used position
	order [wire.Names]link      // the order of use, most recent first
	texts [wire.Names]string    // of the positions
	hash  [wire.Names]uint64    // of the texts
	count [8 * wire.Names]uint8 // by bucket: number of texts in it
	guess [8 * wire.Names]uint8 // by bucket: position of the text that was added last
}

// link holds the neighbours of a position in the order of use.
type link struct{ before, behind uint8 }

// clear forgets the names, at the start of a new stream.
func (t *names) clear() { *t = names{} }

// append appends a name and reports whether it was cut. An empty text means no name.
func (t *names) append(b []byte, text string) (_ []byte, cut bool) {
	if text == "" {
		return append(b, 0), false
	}
	if t.used > 0 && t.texts[t.first] == text {
		return append(b, t.first+1), false
	}
	h := hash(text)
	if i, ok := t.find(h, text); ok {
		t.use(i)
		return append(b, i+1), false
	}
	if short := fit(text); short != text {
		b, _ = t.append(b, short) // the table holds names as they are written
		return b, true
	}
	i := t.add(h, text)
	b = append(b, i+1|wire.Define)
	b = append(b, text...)
	return append(b, 0), false
}

func bucket(h uint64) uint64 { return h % (8 * wire.Names) }

// find returns the position of a name with its hash.
func (t *names) find(h uint64, text string) (uint8, bool) {
	if t.count[bucket(h)] == 0 {
		return 0, false
	}
	if i := t.guess[bucket(h)]; t.hash[i] == h && t.texts[i] == text {
		return i, true
	}
	for i, other := range t.hash[:t.used] {
		if other == h && t.texts[i] == text {
			return uint8(i), true
		}
	}
	return 0, false
}

// add adds a new name to the table and returns its position.
func (t *names) add(h uint64, text string) uint8 {
	i := t.last
	if t.used < wire.Names {
		i = uint8(t.used)
		t.used++
		t.front(i)
	} else {
		t.count[bucket(t.hash[i])]--
		t.use(i)
	}
	t.texts[i], t.hash[i] = text, h
	t.count[bucket(h)]++
	t.guess[bucket(h)] = i
	return i
}

// use makes the name at a position the most recent one.
func (t *names) use(i uint8) {
	if i == t.first {
		return
	}
	l := t.order[i]
	t.order[l.before].behind = l.behind
	if i == t.last {
		t.last = l.before
	} else {
		t.order[l.behind].before = l.before
	}
	t.front(i)
}

// front puts a position that is not in the order of use at its start.
func (t *names) front(i uint8) {
	t.order[i].behind = t.first
	t.order[t.first].before = i
	t.first = i
}

// fit cuts a name to what the format can hold.
func fit(text string) string {
	if len(text) > wire.MaxName {
		text = text[:wire.MaxName]
	}
	text, _, _ = strings.Cut(text, "\x00")
	return text
}

// hash returns a hash of s that differs for most names.
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
