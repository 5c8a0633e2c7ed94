package xz

// decoder decompresses one block. Its output is also its dictionary.
type decoder struct {
	out   []byte
	limit int // largest length of out
	start int // start of the dictionary in out

	lzma lzma
	need need // what the next compressed chunk must contain
}

// need is the resets that the next compressed chunk must contain.
type need uint8

const (
	needDict  need = iota // a reset of the dictionary, and needProps
	needProps             // properties, and needState
	needState             // a reset of the state
	needNone
)

// lzma2 decompresses chunks up to the end mark and returns their length in
// bytes.
func (d *decoder) lzma2(in []byte) (n int, err error) {
	const (
		end      = 0
		rawReset = 1 // stored uncompressed, with a new dictionary
		raw      = 2
		packed   = 0x80
	)
	for {
		if n >= len(in) {
			return 0, ErrTruncated
		}
		control := in[n]
		n++
		switch {
		case control == end:
			return n, nil
		case control == rawReset, control == raw:
			if control == rawReset {
				d.start = len(d.out)
				d.need = max(d.need, needProps)
			} else if d.need == needDict {
				return 0, ErrMalformed
			}
			if len(in)-n < 2 {
				return 0, ErrTruncated
			}
			size := int(in[n])<<8 + int(in[n+1]) + 1
			n += 2
			if size > len(in)-n {
				return 0, ErrTruncated
			}
			if size > d.limit-len(d.out) {
				return 0, ErrLimit
			}
			d.out = append(d.out, in[n:n+size]...)
			n += size
		case control >= packed:
			m, err := d.packedChunk(control, in[n:])
			if err != nil {
				return 0, err
			}
			n += m
		default:
			return 0, ErrMalformed
		}
	}
}

// packedChunk decompresses an LZMA chunk: sizes, properties depending on its
// control byte, and the data.
func (d *decoder) packedChunk(control byte, in []byte) (n int, err error) {
	const (
		head      = 4
		newState  = 1
		newProps  = 2
		newDict   = 3
		highBits  = 0x1f
		resetBits = 5
	)
	if len(in) < head+1 {
		return 0, ErrTruncated
	}
	size := int(control&highBits)<<16 + int(in[0])<<8 + int(in[1]) + 1
	packed := int(in[2])<<8 + int(in[3]) + 1
	n = head
	reset := control >> resetBits & 3
	if reset == newDict {
		d.start, d.need = len(d.out), max(d.need, needProps)
	}
	if d.need == needDict || d.need == needProps && reset < newProps || d.need == needState && reset < newState {
		return 0, ErrMalformed
	}
	if reset >= newProps {
		if !d.lzma.properties(in[n]) {
			return 0, ErrMalformed
		}
		n++
	}
	if reset >= newState {
		d.lzma.reset()
	}
	d.need = needNone
	if packed > len(in)-n {
		return 0, ErrTruncated
	}
	if size > d.limit-len(d.out) {
		return 0, ErrLimit
	}
	if err := d.lzmaChunk(in[n:n+packed], size); err != nil {
		return 0, err
	}
	return n + packed, nil
}
