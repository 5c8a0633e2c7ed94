package xz

import "math/bits"

// Sizes of the LZMA model.
const (
	states       = 12
	maxPosStates = 1 << 4
	lengthStates = 4 // contexts for the slot of a distance
	minMatch     = 2
	probHalf     = 1 << 10 // of 1<<11
	literalCoder = 0x300   // probabilities for the bits of a literal, matched or not
	maxLiteral   = 4       // largest number of context bits of a literal in LZMA2
	alignBits    = 4
	firstSpecial = 4  // lower slots are the distance itself
	firstAlign   = 14 // this and higher slots have direct bits
)

// lzma is the model: probabilities, and the last matches.
type lzma struct {
	lc, lp, pb uint // context bits: of the last byte, of the position for literals, and of the position for matches
	state      uint32
	rep        [4]uint32 // last distances, less one

	kinds     kinds
	distances distances
	length    lengths
	repLength lengths
	literal   [literalCoder << maxLiteral]prob
}

// kinds is the model of what comes next: a literal, a match with a new
// distance, or one with a last distance. It depends on the state, and in part
// on the position.
type kinds struct {
	isMatch    [states << 4]prob
	isRep      [states]prob
	isRep0     [states]prob
	isRep1     [states]prob
	isRep2     [states]prob
	isRep0Long [states << 4]prob
}

func (k *kinds) reset() {
	for _, p := range [...][]prob{k.isMatch[:], k.isRep[:], k.isRep0[:], k.isRep1[:], k.isRep2[:], k.isRep0Long[:]} {
		fill(p)
	}
}

// properties sets the properties from the byte (pb * 5 + lp) * 9 + lc. It
// returns false if they are invalid.
func (m *lzma) properties(b byte) bool {
	if b >= 9*5*5 {
		return false
	}
	m.lc, m.lp, m.pb = uint(b%9), uint(b/9%5), uint(b/45)
	return m.lc+m.lp <= maxLiteral
}

// reset resets everything except the properties.
func (m *lzma) reset() {
	m.state, m.rep = 0, [4]uint32{}
	m.kinds.reset()
	m.distances.reset()
	m.length.reset()
	m.repLength.reset()
	fill(m.literal[:])
}

// lzmaChunk decompresses size bytes.
func (d *decoder) lzmaChunk(in []byte, size int) error {
	const head = 5
	if len(in) < head || in[0] != 0 {
		return ErrMalformed
	}
	r := &rangeDecoder{in: in, at: 1, rng: 1<<32 - 1}
	for range head - 1 {
		r.code = r.code<<8 | r.byte()
	}
	m := &d.lzma
	for end := len(d.out) + size; len(d.out) < end; {
		if r.short {
			return ErrMalformed
		}
		pos := uint32(len(d.out) - d.start)
		posState := pos & (1<<m.pb - 1)
		if r.bit(&m.kinds.isMatch[m.state<<4+posState]) == 0 {
			if err := d.readLiteral(r, pos); err != nil {
				return err
			}
			continue
		}
		length, err := m.match(r, posState)
		if err != nil {
			return err
		}
		if err := d.copy(m.rep[0], int(length), end); err != nil {
			return err
		}
	}
	r.normalize()
	if r.short || r.at != len(in) || r.code != 0 {
		return ErrMalformed
	}
	return nil
}

// readLiteral reads a literal byte.
func (d *decoder) readLiteral(r *rangeDecoder, pos uint32) error {
	m := &d.lzma
	last := uint32(0)
	if pos > 0 {
		last = uint32(d.out[len(d.out)-1])
	}
	context := pos&(1<<m.lp-1)<<m.lc + last>>(8-m.lc)
	p := m.literal[literalCoder*context:][:literalCoder]
	const afterLiteral = 7 // lower states follow a literal
	symbol := uint32(1)
	if m.state >= afterLiteral {
		if m.rep[0] >= pos {
			return ErrMalformed
		}
		matched := uint32(d.out[len(d.out)-int(m.rep[0])-1])
		for symbol < 0x100 {
			matched <<= 1
			expected := matched & 0x100
			b := r.bit(&p[0x100+expected+symbol])
			symbol = symbol<<1 | b
			if expected>>8 != b {
				break
			}
		}
	}
	for symbol < 0x100 {
		symbol = symbol<<1 | r.bit(&p[symbol])
	}
	d.out = append(d.out, byte(symbol))
	switch {
	case m.state < 4:
		m.state = 0
	case m.state < 10:
		m.state -= 3
	default:
		m.state -= 6
	}
	return nil
}

// match reads a match, moves its distance to the front of the last ones, and
// returns its length.
func (m *lzma) match(r *rangeDecoder, posState uint32) (uint32, error) {
	const afterLiteral = 7
	next := func(literal, other uint32) {
		if m.state < afterLiteral {
			m.state = literal
		} else {
			m.state = other
		}
	}
	if r.bit(&m.kinds.isRep[m.state]) == 0 {
		length := m.length.read(r, posState)
		d := m.distances.read(r, length)
		if bits.OnesCount32(d) == 32 { // an end mark, which LZMA2 does not use
			return 0, ErrMalformed
		}
		m.rep = [4]uint32{d, m.rep[0], m.rep[1], m.rep[2]}
		next(7, 10)
		return length + minMatch, nil
	}
	switch {
	case r.bit(&m.kinds.isRep0[m.state]) == 0:
		if r.bit(&m.kinds.isRep0Long[m.state<<4+posState]) == 0 {
			next(9, 11)
			return 1, nil
		}
	case r.bit(&m.kinds.isRep1[m.state]) == 0:
		m.rep = [4]uint32{m.rep[1], m.rep[0], m.rep[2], m.rep[3]}
	case r.bit(&m.kinds.isRep2[m.state]) == 0:
		m.rep = [4]uint32{m.rep[2], m.rep[0], m.rep[1], m.rep[3]}
	default:
		m.rep = [4]uint32{m.rep[3], m.rep[0], m.rep[1], m.rep[2]}
	}
	length := m.repLength.read(r, posState)
	next(8, 11)
	return length + minMatch, nil
}

// copy appends n bytes from distance+1 bytes before the end. They may overlap
// the new bytes.
func (d *decoder) copy(distance uint32, n, end int) error {
	if uint64(distance) >= uint64(len(d.out)-d.start) || n > end-len(d.out) {
		return ErrMalformed
	}
	from := len(d.out) - int(distance) - 1
	for i := range n {
		d.out = append(d.out, d.out[from+i])
	}
	return nil
}
