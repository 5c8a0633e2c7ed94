package sites

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/trace"
)

// Frame is an address on the stack of a call and the place there. A call
// without a stack has its caller as the only frame, without an address.
type Frame struct {
	Addr uint64
	Place
	Inlined bool // inlined into the next frame, which has the same address
}

// Unknown is the text of a frame of which nothing is known.
const Unknown = "??"

// String returns the place, preceded by the address if the function is unknown.
func (f Frame) String() string {
	s := f.Place.String()
	if f.Function == "" && f.Addr != 0 {
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
	// Source returns the source name of a function for its linker symbol. It is
	// called for callers only, since the texts of frames contain source names
	// already. It may be nil.
	Source func(function string) string
	// Inlined adds frames for inlined functions, too. Otherwise the innermost
	// function stands for all that are active at an address.
	Inlined bool

	places map[string]Place // by text
}

// maxPlaces bounds the number of cached texts.
const maxPlaces = 1 << 16

// Append appends at most depth frames of a call to frames, or all if depth is
// 0. It begins with the innermost frame that is not the C++ operator new, which
// is of no interest itself.
func (fr *Framer) Append(frames []Frame, pid int32, s *trace.Stack, caller *trace.Caller, depth int) []Frame {
	if len(s.Frames) == 0 {
		return append(frames, Frame{Place: fr.Caller(caller)})
	}
	start := len(frames)
	for i := range s.Frames {
		first := len(frames) == start
		frames = fr.Step(frames, pid, s, i)
		if first {
			made := frames[start:]
			news := LeadingNews(len(made), i+1 == len(s.Frames), func(i int) string { return made[i].Function })
			frames = slices.Delete(frames, start, start+news)
		}
		if depth > 0 && len(frames)-start >= depth {
			return frames[:start+depth]
		}
	}
	return frames
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
		frames = append(frames, Frame{Addr: s.Frames[i], Place: fr.place(text), Inlined: more})
	}
	return frames
}

// LeadingNews returns how many of the first n frames of a stack are operator
// new. last reports that the stack has no other frames; then the last one does
// not count.
func LeadingNews(n int, last bool, function func(i int) string) (news int) {
	if last {
		n--
	}
	for news < n && OperatorNew(function(news)) {
		news++
	}
	return news
}

// frame returns frame i of a stack.
func (fr *Framer) frame(pid int32, s *trace.Stack, i int) Frame {
	return Frame{Addr: s.Frames[i], Place: fr.place(fr.text(pid, s, i))}
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

// OperatorNew reports whether a function is a form of C++'s operator new, by
// its source or linker name.
func OperatorNew(function string) bool {
	return strings.HasPrefix(function, "operator new") || strings.HasPrefix(function, "_Znw") || strings.HasPrefix(function, "_Zna")
}
