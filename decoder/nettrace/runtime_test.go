package nettrace

import (
	"errors"
	"testing"

	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// A payload of MethodILToNativeMap has 21 bytes and 8 for each entry. The reference
// reader fails at one that has more entries than bytes, and so does this one.
func TestNativeMap(t *testing.T) {
	payload := func(n int, entries byte) []byte {
		b := make([]byte, n)
		if n > 17 {
			b[17] = entries
		}
		return b
	}
	for _, tt := range []struct {
		name      string
		payload   []byte
		err       error
		fatal, ok bool
	}{
		{"no entries", payload(21, 0), nil, false, true},
		{"two entries", payload(21+16, 2), nil, false, true},
		{"with the version of the code", payload(21+16+8, 2), nil, false, true},
		{"empty", nil, trace.ErrMalformed, false, false},
		{"without the number of entries", payload(17, 0), trace.ErrMalformed, false, false},
		{"without the last field", payload(19, 0), trace.ErrMalformed, false, false},
		{"without the last field, two entries", payload(19+16, 2), trace.ErrMalformed, false, false},
		{"more entries than bytes", payload(21+16, 3), trace.ErrMalformed, true, false},
	} {
		d := &Reader{s: &Scanner{info: Info{Frequency: 1e9}}}
		var rec trace.Record
		err := d.nativeMap(&Event{Meta: &wire.Metadata{}, Thread: &Thread{}, Payload: tt.payload}, &rec, &plan{})
		if !errors.Is(err, tt.err) || errors.Is(err, errFatal) != tt.fatal || (rec.Kind == trace.KindEvent) != tt.ok {
			t.Errorf("%s: %v, a %v", tt.name, err, rec.Kind)
		}
	}
}
