package nettrace_test

import (
	"testing"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// The numbers of docs/formats/nettrace.md from which several others follow.
func TestNumbers(t *testing.T) {
	if wire.HeadV4 != 32 || wire.HeadV6 != 20 {
		t.Errorf("objects begin at %d and blocks at %d, want 32 and 20", wire.HeadV4, wire.HeadV6)
	}
	if wire.BlockLabels != 8 || wire.BlockLabels.String() != "LabelList" || wire.BlockKind(9).String() != "Unknown" {
		t.Errorf("the last kind of block is %d, %v", wire.BlockLabels, wire.BlockLabels)
	}
	// Every code up to the last one except 0 and 2 has a name, and no other.
	for code := range wire.Type(64) {
		known := code != 0 && code != 2 && code <= wire.TypeBoolean8
		if got := code.String() != ""; got != known {
			t.Errorf("type %d has the name %q", code, code)
		}
		if !known && code.Size() != 0 {
			t.Errorf("type %d, which is none, has %d bytes", code, code.Size())
		}
	}
}
