package swap

import (
	"bytes"
	"math"

	wire "rtrace-bpf/internal/wire/swap"
)

var notAvailable = []byte("N/A")

// likely reports whether a real writer may have sent this value.
func (p *parser) likely(c wire.Check, v *Value) bool {
	switch c {
	case wire.IsZero:
		return v.Num == 0
	case wire.IsSize:
		return v.Num < 1<<48
	case wire.IsPath:
		return len(v.Text) > 0 && v.Text[0] == '/' || bytes.Equal(v.Text, notAvailable)
	case wire.IsLoad:
		return between(v.Num, 100*wire.MaxCPUs)
	case wire.IsClock:
		return between(v.Num, 100e6)
	case wire.IsPID:
		return v.Num <= 1<<22
	case wire.IsMemory:
		return v.Num < 1<<50
	}
	return true
}

// between reports whether a float is 0 or between 0.001 and limit. Bytes that are not a
// float mostly read as a very small number.
func between(num uint64, limit float32) bool {
	f := math.Float32frombits(uint32(num))
	return f == 0 || f >= 0.001 && f <= limit
}

// maxSearch bounds how many values of a message are tried to find the number of
// processors. A real message of 256 processors needs fewer.
const maxSearch = 1 << 20

// countCPUs returns the most likely number of processors in a SYSTEM message: the first
// number with which likely values fill the payload to its end, else the first with
// likely values. Real daemons declare more bytes than they fill.
func (p *parser) countCPUs(dst *Fields) int {
	def := wire.Lookup(wire.System)
	first := 0
	p.search, p.left = true, maxSearch
	defer func() { p.search = false }()
	for n := 1; n <= wire.MaxCPUs && p.left > 0; n++ {
		p.cpus = n
		for i := range def.Layouts {
			if p.layout(&def.Layouts[i], dst.Values[:0]) != nil {
				continue
			}
			dst.Values = p.values
			if p.unsure {
				continue
			}
			if p.off == len(p.data) {
				return n
			}
			if first == 0 {
				first = n
			}
		}
	}
	return max(first, 1)
}
