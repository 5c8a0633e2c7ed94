package sites

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"rtrace-bpf/internal/frametext"
	"rtrace-bpf/trace"
)

// Frame is a step of the way to a call: an address and what is known of it. A
// call without stack has its caller as the only frame, without an address.
type Frame struct {
	Addr uint64
	Place
	Inlined bool // its code is that of the next frame, which has the same address
}

// Unknown is how a frame is printed of which nothing is known.
const Unknown = "??"

// String is the place, with the address in front if the function is not known.
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

// Address is the address as 16 hexadecimal digits, or empty if there is none.
func (f Frame) Address() string {
	if f.Addr == 0 {
		return ""
	}
	return fmt.Sprintf("0x%016x", f.Addr)
}

// Label is the function with its module, or what else tells frames apart whose
// functions are not known.
func (f Frame) Label() string {
	if f.Function != "" {
		return f.Function
	}
	return f.String()
}

// ToFunction leaves of the frame what is the same in all of a function: not the
// line, nor whether it was inlined, and the address only if the function is not
// known.
func (f *Frame) ToFunction() {
	f.File, f.Line, f.Inlined = "", 0, false
	f.forget()
}

// forget drops the address if the function is known.
func (f *Frame) forget() {
	if f.Function != "" {
		f.Addr = 0
	}
}

// AppendKey appends bytes that are the same for equal frames only, also of one
// behind the other.
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

// Framer makes frames of the stacks and callers of calls.
type Framer struct {
	// Name returns the text for a frame that has none or "in ??". It may be nil.
	Name func(pid int32, addr uint64) string
	// Source returns a function's name as the source has it, of what the linker
	// knows. It is asked for callers only, since texts of frames have that
	// already, and may be nil.
	Source func(function string) string
	// Inlined makes frames of inlined functions, too; else the innermost one
	// stands for all that are active at an address.
	Inlined bool

	places map[string]Place // of texts
}

// maxPlaces bounds the texts that are remembered.
const maxPlaces = 1 << 16

// Append appends the frames of a call to frames: at most depth of them, all if
// depth is 0, beginning with the innermost that is not the C++ operator new,
// which itself says nothing about the program.
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

// Step appends the frames of one address of a stack: the function there, and in
// front of it, if that is wanted, those that were inlined into it.
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

// LeadingNews is how many of the first n frames of a stack are operator new; last
// says that there are no others, and then the last one counts as none.
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

// OperatorNew says whether a function is one of the forms of C++'s operator
// new, in the source's or the linker's spelling.
func OperatorNew(function string) bool {
	return strings.HasPrefix(function, "operator new") || strings.HasPrefix(function, "_Znw") || strings.HasPrefix(function, "_Zna")
}
