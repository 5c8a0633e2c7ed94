package xz

// prob is the probability of a zero bit, in 1/2048.
type prob uint16

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
