package sites

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/internal/wrapper"
	"rtrace-bpf/trace"
)

// Frame is an address on the stack of a call and the place there. A call
// without a stack has its caller as the only frame, without an address.
type Frame struct {
	Addr uint64
	Place
	Inlined bool // inlined into the next frame, which has the same address
	// Position is the place of a frame without a function: its file and the offset in it, such as
	// "prog+0x1234", which is the same in each run. It is empty if it is not known.
	Position string
}

// Unknown is the text of a frame of which nothing is known.
const Unknown = "??"

// String returns the place. If the function is unknown, it is the position, or the address and
// what is known.
func (f Frame) String() string {
	s := f.Place.String()
	if f.Function == "" && f.Addr != 0 {
		if f.Position != "" && f.File == "" {
			return f.Position
		}
		return join(f.Address(), s)
	}
	if s == "" {
		return Unknown
	}
	return s
}

// Address returns the address as 16 hexadecimal digits, or an empty string if
// there is none.
func (f Frame) Address() string {
	if f.Addr == 0 {
		return ""
	}
	return fmt.Sprintf("0x%016x", f.Addr)
}

// Label returns the function, or String if the function is unknown.
func (f Frame) Label() string {
	if f.Function != "" {
		return f.Function
	}
	return f.String()
}

// ToFunction reduces the frame to what all frames of a function share. It
// clears the file, the line and Inlined, and also the address if the function
// is known.
func (f *Frame) ToFunction() {
	f.File, f.Line, f.Inlined = "", 0, false
	f.dropAddress()
}

// dropAddress clears the address if the function is known.
func (f *Frame) dropAddress() {
	if f.Function != "" {
		f.Addr = 0
	}
}

// AppendKey appends bytes that are equal for equal frames only. Keys may be
// concatenated.
func (f *Frame) AppendKey(key []byte) []byte {
	key = binary.LittleEndian.AppendUint64(key, f.Addr)
	key = binary.LittleEndian.AppendUint64(key, f.Line)
	if f.Inlined {
		key = append(key, 1)
	} else {
		key = append(key, 0)
	}
	for _, s := range [...]string{f.Function, f.File, f.Module} {
		key = binary.AppendUvarint(key, uint64(len(s)))
		key = append(key, s...)
	}
	return key
}

// Framer converts the stacks and callers of calls to frames.
type Framer struct {
	// Name returns the text of a frame that has none or "in ??". It may be nil.
	Name func(pid int32, addr uint64) string
	// Module returns the module at an address, for texts that lack it. It may be nil.
	Module func(pid int32, addr uint64) string
	// Position returns the Position of a frame. It may be nil.
	Position func(pid int32, addr uint64) string
	// Source returns the source name of a function for its linker symbol. It is
	// called for callers only, since the texts of frames contain source names
	// already. It may be nil.
	Source func(function string) string
	// Inlined adds frames for inlined functions, too. Otherwise the innermost
	// function stands for all that are active at an address.
	Inlined bool
	// Wrappers holds the frames to leave out where a stack begins. nil stands for the frames that
	// package wrapper knows.
	Wrappers *wrapper.List

	places map[string]Place // by text
	has    map[Place]bool   // by place: it is in Wrappers
}

// wrappers is the list of a Framer without one.
var wrappers = new(wrapper.List)

// maxPlaces bounds the number of cached texts.
const maxPlaces = 1 << 16

// Append appends at most depth frames of a call to frames, or all if depth is
// 0. It begins with the innermost frame that is not in Wrappers.
func (fr *Framer) Append(frames []Frame, pid int32, s *trace.Stack, caller *trace.Caller, depth int) []Frame {
	if len(s.Frames) == 0 {
		return append(frames, Frame{Place: fr.Caller(caller)})
	}
	start, first := len(frames), -1
	for i := range s.Frames {
		n := len(frames)
		frames = fr.Step(frames, pid, s, i)
		for ; first < 0 && n < len(frames); n++ {
			if !fr.Wrapper(&frames[n]) {
				first = n
			}
		}
		if first >= 0 && depth > 0 && len(frames)-first >= depth {
			break
		}
	}
	if first < 0 {
		first = start + fr.First(len(frames)-start, func(i int) *Frame { return &frames[start+i] })
	}
	frames = slices.Delete(frames, start, first)
	if depth > 0 && len(frames)-start > depth {
		frames = frames[:start+depth]
	}
	return frames
}

// Wrapper reports whether a frame is in Wrappers.
func (fr *Framer) Wrapper(f *Frame) bool {
	if f.Place == (Place{}) {
		return false
	}
	has, ok := fr.has[f.Place]
	if ok {
		return has
	}
	if fr.has == nil || len(fr.has) == maxPlaces {
		fr.has = make(map[Place]bool)
	}
	x := wrapperFrame(f)
	has = fr.list().Has(&x)
	own := f.Place
	own.Function, own.File, own.Module = strings.Clone(own.Function), strings.Clone(own.File), strings.Clone(own.Module)
	fr.has[own] = has
	return has
}

// First returns the index of the first of n frames that is not in Wrappers, or otherwise the one to
// begin with. n must not be 0.
func (fr *Framer) First(n int, frame func(i int) *Frame) int {
	for i := range n {
		if !fr.Wrapper(frame(i)) {
			return i
		}
	}
	return fr.list().First(n, func(i int) wrapper.Frame { return wrapperFrame(frame(i)) })
}

func wrapperFrame(f *Frame) wrapper.Frame {
	return wrapper.Frame{Function: f.Function, File: f.File, Module: f.Module}
}

func (fr *Framer) list() *wrapper.List {
	if fr.Wrappers != nil {
		return fr.Wrappers
	}
	return wrappers
}

// Step appends the frames of one address of a stack: the function there,
// preceded by the functions inlined into it if Inlined is set.
func (fr *Framer) Step(frames []Frame, pid int32, s *trace.Stack, i int) []Frame {
	rest := fr.text(pid, s, i)
	for more := true; more; {
		text := rest
		if fr.Inlined {
			text, rest = frametext.Outer(rest)
		}
		more = fr.Inlined && rest != ""
		frames = append(frames, fr.framed(pid, s.Frames[i], text))
		frames[len(frames)-1].Inlined = more
	}
	return frames
}

// frame returns frame i of a stack.
func (fr *Framer) frame(pid int32, s *trace.Stack, i int) Frame {
	return fr.framed(pid, s.Frames[i], fr.text(pid, s, i))
}

// framed returns the frame with a text.
func (fr *Framer) framed(pid int32, addr uint64, text string) Frame {
	f := Frame{Addr: addr, Place: fr.place(text)}
	if f.Module == "" && fr.Module != nil {
		f.Module = fr.Module(pid, addr)
	}
	if f.Function == "" && fr.Position != nil {
		f.Position = fr.Position(pid, addr)
	}
	return f
}

// text returns the text of frame i of a stack.
func (fr *Framer) text(pid int32, s *trace.Stack, i int) string {
	text := ""
	if len(s.Names) == len(s.Frames) {
		text = s.Names[i]
	}
	if (text == "" || text == frametext.Unknown) && fr.Name != nil {
		text = fr.Name(pid, s.Frames[i])
	}
	return text
}

// Caller returns the place of a caller.
func (fr *Framer) Caller(c *trace.Caller) Place {
	p := Place{Function: c.Function, File: Printable(c.File), Line: c.Line}
	if fr.Source != nil && c.Function != "" {
		p.Function = frametext.Plain(fr.Source(c.Function))
	}
	p.Function = Printable(p.Function)
	return p
}

func (fr *Framer) place(text string) Place {
	if text == "" {
		return Place{}
	}
	if p, ok := fr.places[text]; ok {
		return p
	}
	if fr.places == nil || len(fr.places) == maxPlaces {
		fr.places = make(map[string]Place)
	}
	text = strings.Clone(text)
	p := ParsePlace(text)
	fr.places[text] = p
	return p
}
