package functions

import (
	"bytes"
	"encoding/binary"
	"math"
	"strings"
	"unsafe"
)

// Kind is what an event reports.
type Kind uint8

// The kinds of events.
const (
	Entered = Kind(functionsCallKindCALL_ENTERED) // a thread enters a function
	Left    = Kind(functionsCallKindCALL_LEFT)    // it returns from one
	Looked  = Kind(functionsCallKindCALL_VALUE)   // it reaches a place where a value is read
	Read    = Kind(functionsCallKindCALL_TEXT)    // a text of an entered call could be read
)

// Event is an event of a thread.
type Event struct {
	Kind Kind
	Time uint64 // ns of CLOCK_MONOTONIC
	TID  uint32
	// Function is the function that is entered or left. A return alone does not identify it, only
	// together with its entry; see Calls.
	Function *Function
	Value    *Value // Looked
	PC       uint64 // of the function's first instruction, or where the value was read
	Caller   uint64 // the return address; 0 if unknown

	// Entry is the entry of a call that has ended, if the function belongs to package modules.
	Entry *Event
	// Inner reports that such a call made another one, which counts instead of it.
	Inner bool
	// Slot is the place on the stack of the return address, even if it was overwritten.
	Slot uint64

	site   *site
	unread uint8
	words  [MaxArguments]uint64 // for a return: the result
	texts  [MaxTexts]string
	which  int // Read: the number of the text
	data   []byte
}

// counted reports whether the text of an entry is bytes whose number is in another argument.
func (s *site) counted(text int) bool {
	for i := range len(s.function.Args) {
		letter := s.function.Args[i]
		if letter != 's' && letter != countedLetter {
			continue
		}
		if text == 0 {
			return letter == countedLetter
		}
		text--
	}
	return false
}

// Argument is an argument of a call, or its result.
type Argument struct {
	Letter byte // the type in SWAP's letters, see Function
	Number uint64
	Text   string // for letter s
}

// Arguments appends the arguments of an entry to list. A text that was null or not in memory
// becomes the pointer, p.
func (e *Event) Arguments(list []Argument) []Argument {
	text, word := 0, 0
	for i := range len(e.Function.Args) {
		a := Argument{Letter: e.Function.Args[i]}
		a.Number = e.number(a.Letter, word)
		word += wordsOf(a.Letter, e.site.narrow)
		if a.Letter == 's' {
			e.text(&a, text)
			text++
		}
		list = append(list, a)
	}
	return list
}

// Result returns the result of a call that has ended.
func (e *Event) Result() Argument {
	a := Argument{Letter: e.Function.Result}
	switch a.Letter {
	case 'v', 'n':
		return a
	}
	a.Number = e.number(a.Letter, 0)
	if a.Letter == 's' {
		e.text(&a, 0)
	}
	return a
}

// number returns the bits of an argument that begins with the given word.
func (e *Event) number(letter byte, word int) uint64 {
	n := e.words[word]
	switch {
	case letter == 'b' && n&math.MaxUint8 != 0:
		return 1
	case letter == 'b':
		return 0
	case !e.site.narrow:
	case letter == 'x':
		return uint64(int32(n)) // a long, or an int that the user declared as one
	case letter == 'w':
		return n | e.words[word+1]<<32
	}
	return n
}

// text sets a to the text with the given number, or to the pointer if it could not be read.
func (e *Event) text(a *Argument, number int) {
	if e.unread>>number&1 != 0 {
		a.Letter = 'p'
		return
	}
	a.Text = e.texts[number]
}

// Words returns the arguments of an entry as they were in registers and on the stack, or the
// result.
func (e *Event) Words() *[MaxArguments]uint64 { return &e.words }

// Text returns one of the texts of an entry, and whether it could be read.
func (e *Event) Text(number int) (string, bool) {
	return e.texts[number], e.unread>>number&1 == 0
}

// Words of an entry that are not arguments, as in bpf/functions.h.
const (
	wordMeasured = 13
	wordFollowed = 14
	wordExtra    = 15
)

// Measured returns the length in characters of the text that an argument of an entry points to.
// ok is false if the text was not in memory, or is too long to be measured at an entry.
func (e *Event) Measured() (length uint64, ok bool) {
	return e.words[wordMeasured], e.words[wordMeasured] != math.MaxUint64
}

// Followed returns the end of the chain of pointers that starts at an argument of an entry or, in
// the data of a return, at the result; 0 if it leads nowhere.
func (e *Event) Followed() uint64 {
	if e.Kind == Left {
		if len(e.data) < 8 {
			return 0
		}
		return binary.NativeEndian.Uint64(e.data)
	}
	return e.words[wordFollowed]
}

// Extra returns the word at Function.Extra.
func (e *Event) Extra() uint64 { return e.words[wordExtra] }

// Data returns the bytes of a value, or those that a call has written; nil if they could not be
// read.
func (e *Event) Data() []byte {
	if e.unread != 0 {
		return nil
	}
	return e.data
}

const (
	textBytes  = len(functionsCallExit{}.Text)
	headSize   = int(unsafe.Sizeof(functionsCallExit{}.Head))
	entrySize  = int(unsafe.Offsetof(functionsCallEntry{}.Text))
	exitSize   = int(unsafe.Offsetof(functionsCallExit{}.Text))
	textSize   = int(unsafe.Sizeof(functionsCallText{}))
	valueStart = int(unsafe.Offsetof(functionsCallValue{}.Data))

	followedBytes = 8 // of what the result of a call points to
)

// Decode reads a record of the programs, aligned to 8 bytes. It copies what it keeps. It returns
// false for records that the programs never send.
func (f *Functions) Decode(b []byte, e *Event) bool {
	if len(b) < headSize {
		return false
	}
	head := &(*functionsCallExit)(unsafe.Pointer(unsafe.SliceData(b))).Head
	*e = Event{Kind: Kind(head.Kind), Time: head.Time, TID: head.Tid, Slot: head.Slot, unread: head.Unread}
	if e.site = f.site(int(head.Site)); e.site == nil {
		return false
	}
	switch {
	case e.Kind == Entered && len(b) >= entrySize && e.site.function != nil:
		entry := (*functionsCallEntry)(unsafe.Pointer(unsafe.SliceData(b)))
		e.Function, e.PC, e.Caller = e.site.function, entry.Pc, entry.Caller
		e.words = entry.Words
		e.readTexts(b[entrySize:])
	case e.Kind == Left && len(b) >= exitSize && e.site.value == nil:
		e.words[0] = (*functionsCallExit)(unsafe.Pointer(unsafe.SliceData(b))).Result
		if n := len(b) - exitSize; n == MaxOut || n == followedBytes {
			e.data = bytes.Clone(b[exitSize:])
		} else {
			e.readTexts(b[exitSize:])
		}
	case e.Kind == Looked && len(b) >= valueStart && e.site.value != nil && len(b)-valueStart >= int(e.site.value.Size):
		e.Value, e.PC = e.site.value, (*functionsCallValue)(unsafe.Pointer(unsafe.SliceData(b))).Pc
		e.data = bytes.Clone(b[valueStart : valueStart+int(e.Value.Size)])
	case e.Kind == Read && len(b) >= textSize && e.site.value == nil:
		text := (*functionsCallText)(unsafe.Pointer(unsafe.SliceData(b)))
		if e.which = int(text.Number); e.which >= MaxTexts {
			return false
		}
		e.texts[0], _, _ = strings.Cut(string(text.Text[:]), "\x00")
	default:
		return false
	}
	return true
}

func (e *Event) readTexts(b []byte) {
	for i := range e.texts {
		if len(b) < (i+1)*textBytes {
			break
		}
		e.texts[i] = string(b[i*textBytes : (i+1)*textBytes])
		if e.Kind != Entered || !e.site.counted(i) {
			e.texts[i], _, _ = strings.Cut(e.texts[i], "\x00")
		}
	}
}
