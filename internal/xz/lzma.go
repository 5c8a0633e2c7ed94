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

// prob is the probability of a zero bit, in 1/2048.
type prob uint16

// lzma is the model: probabilities, and the last matches.
type lzma struct {
	lc, lp, pb uint // context bits: of the last byte, of the position for literals, and of the position for matches
	state      uint32
	rep        [4]uint32 // last distances, less one

	isMatch    [states << 4]prob
	isRep      [states]prob
	isRep0     [states]prob
	isRep1     [states]prob
	isRep2     [states]prob
	isRep0Long [states << 4]prob
	slot       [lengthStates][64]prob
	special    [firstAlign][64]prob // trees for the low bits of a distance, by slot
	align      [1 << alignBits]prob
	length     lengths
	repLength  lengths
	literal    [literalCoder << maxLiteral]prob
}

// lengths is the model of match lengths.
type lengths struct {
	choice, choice2 prob
	low, mid        [maxPosStates][8]prob
	high            [256]prob
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
	fill(m.isMatch[:])
	fill(m.isRep[:])
	fill(m.isRep0[:])
	fill(m.isRep1[:])
	fill(m.isRep2[:])
	fill(m.isRep0Long[:])
	for i := range m.slot {
		fill(m.slot[i][:])
	}
	for i := range m.special {
		fill(m.special[i][:])
	}
	fill(m.align[:])
	m.length.reset()
	m.repLength.reset()
	fill(m.literal[:])
}

func (l *lengths) reset() {
	l.choice, l.choice2 = probHalf, probHalf
	for i := range l.low {
		fill(l.low[i][:])
		fill(l.mid[i][:])
	}
	fill(l.high[:])
}

func fill(p []prob) {
	for i := range p {
		p[i] = probHalf
	}
}

// rangeDecoder decodes bits with their probabilities.
type rangeDecoder struct {
	in    []byte
	at    int
	rng   uint32
	code  uint32
	short bool // a read went past the end
}

func (r *rangeDecoder) byte() uint32 {
	if r.at >= len(r.in) {
		r.short = true
		return 0
	}
	r.at++
	return uint32(r.in[r.at-1])
}

func (r *rangeDecoder) normalize() {
	if r.rng < 1<<24 {
		r.rng <<= 8
		r.code = r.code<<8 | r.byte()
	}
}

// bit reads a bit with a probability, and adapts the probability.
func (r *rangeDecoder) bit(p *prob) uint32 {
	const adapt = 5
	r.normalize()
	bound := r.rng >> 11 * uint32(*p)
	if r.code < bound {
		r.rng = bound
		*p += (1<<11 - *p) >> adapt
		return 0
	}
	r.rng -= bound
	r.code -= bound
	*p -= *p >> adapt
	return 1
}

// tree reads n bits, the highest first.
func (r *rangeDecoder) tree(p []prob, n int) uint32 {
	m := uint32(1)
	for range n {
		m = m<<1 | r.bit(&p[m])
	}
	return m - 1<<n
}

// reverse reads n bits, the lowest first.
func (r *rangeDecoder) reverse(p []prob, n int) uint32 {
	m, v := uint32(1), uint32(0)
	for i := range n {
		b := r.bit(&p[m])
		m = m<<1 | b
		v |= b << i
	}
	return v
}

// direct reads n bits that are 0 or 1 with equal probability.
func (r *rangeDecoder) direct(n int) uint32 {
	v := uint32(0)
	for range n {
		r.normalize()
		r.rng >>= 1
		b := uint32(0)
		if r.code >= r.rng {
			r.code -= r.rng
			b = 1
		}
		v = v<<1 | b
	}
	return v
}

// read reads the length of a match, less minMatch.
func (l *lengths) read(r *rangeDecoder, posState uint32) uint32 {
	switch {
	case r.bit(&l.choice) == 0:
		return r.tree(l.low[posState][:], 3)
	case r.bit(&l.choice2) == 0:
		return 8 + r.tree(l.mid[posState][:], 3)
	}
	return 16 + r.tree(l.high[:], 8)
}

// distance reads a distance, less one. Its coding depends on the length of the
// match.
func (m *lzma) distance(r *rangeDecoder, length uint32) uint32 {
	slot := r.tree(m.slot[min(length, lengthStates-1)][:], 6)
	if slot < firstSpecial {
		return slot
	}
	low := int(slot>>1) - 1
	base := (2 | slot&1) << low
	if slot < firstAlign {
		return base + r.reverse(m.special[slot][:], low)
	}
	return base + r.direct(low-alignBits)<<alignBits + r.reverse(m.align[:], alignBits)
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
		if r.bit(&m.isMatch[m.state<<4+posState]) == 0 {
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
	if r.bit(&m.isRep[m.state]) == 0 {
		length := m.length.read(r, posState)
		d := m.distance(r, length)
		if bits.OnesCount32(d) == 32 { // an end mark, which LZMA2 does not use
			return 0, ErrMalformed
		}
		m.rep = [4]uint32{d, m.rep[0], m.rep[1], m.rep[2]}
		next(7, 10)
		return length + minMatch, nil
	}
	switch {
	case r.bit(&m.isRep0[m.state]) == 0:
		if r.bit(&m.isRep0Long[m.state<<4+posState]) == 0 {
			next(9, 11)
			return 1, nil
		}
	case r.bit(&m.isRep1[m.state]) == 0:
		m.rep = [4]uint32{m.rep[1], m.rep[0], m.rep[2], m.rep[3]}
	case r.bit(&m.isRep2[m.state]) == 0:
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
