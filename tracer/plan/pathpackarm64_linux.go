package plan

import (
	"errors"

	"rtrace-bpf/tracer/site"
	"rtrace-bpf/tracer/site/cover"
)

// pathPackerARM64 packs a site in the middle of a function of arm64: see bpf/pass_arm64.h.
type pathPackerARM64 struct {
	pathPacker
	notes bool // see pathSite
}

// Limits of what fits into a packed site.
const (
	pagesARM64  = 1 << 11 // from the start of the code
	pushedARM64 = 31      // pairs of words pushed before the site
	framesARM64 = 6       // words from the stack pointer up to the saved frame pointer
	registers32 = 32      // bits of the lower half of a register
)

func (x *pathPackerARM64) pack() (uint64, error) {
	values, err := x.values(x.place)
	pair := 2 * x.word
	pushed := x.site.StackAdjust / pair
	if x.site.StackAdjust%pair != 0 || pushed < 0 || pushed > pushedARM64 {
		err = errors.Join(err, errDeep)
	}
	frame, err2 := x.frame()
	condition, err3 := x.condition()
	packed := values | uint64(pushed)<<29 | frame<<35 | condition
	if x.notes {
		packed |= 1 << 34
	}
	return packed, errors.Join(err, err2, err3)
}

// place returns the number of a place, which must be a register.
func (x *pathPackerARM64) place(p cover.Place) (uint64, error) {
	if p.Stack {
		return 0, errDeep
	}
	return uint64(p.Reg), nil
}

// Numbers of x29 and x30.
const (
	frameARM64 = 29
	linkARM64  = 30
)

// frame packs where the frame pointer and, in the next word, the return address of the caller
// are: 0 if they are in their registers, n if they are n-1 words above the stack pointer. A Note
// needs none.
func (x *pathPackerARM64) frame() (uint64, error) {
	fp, link := x.site.Frame, x.site.Link
	switch at := fp.Offset / x.word; {
	case x.site.Role == cover.Note, !fp.Stack && fp.Reg == frameARM64 && !link.Stack && link.Reg == linkARM64:
		return 0, nil
	case fp.Stack && link.Stack && link.Offset == fp.Offset+x.word && fp.Offset >= 0 && fp.Offset%x.word == 0 && at <= framesARM64:
		return uint64(at) + 1, nil
	}
	return 0, errFrame
}

// condition packs the condition of the site.
func (x *pathPackerARM64) condition() (uint64, error) {
	when := x.site.When
	not := uint64(0)
	if when.Not {
		not = 1
	}
	var c uint64
	switch when.Kind {
	case cover.Always:
		if when.Not || x.notes {
			return 0, errCondition
		}
		return 0, nil
	case cover.Flags:
		c = uint64(when.Code) ^ not
	case cover.RegZero:
		wide := uint64(0)
		if when.Bit > registers32 {
			wide = 1
		}
		c = 1<<10 | uint64(when.Reg) | wide<<5 | not<<6
	case cover.BitSet:
		if when.Bit >= registers32 {
			return 0, errCondition
		}
		c = 1<<11 | uint64(when.Reg) | uint64(when.Bit)<<5 | not<<10
	default:
		return 0, errCondition
	}
	if when.Kind != cover.Flags && (when.Reg == site.NoReg || when.Reg == frameARM64 || when.Reg == linkARM64 || when.Reg == 18) {
		return 0, errCondition
	}
	return c&0xf<<10 | c>>4<<51 | 1<<39, nil
}
