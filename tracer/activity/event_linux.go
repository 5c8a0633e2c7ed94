package activity

import "unsafe"

// Kind is what an event reports.
type Kind uint8

// The kinds of events.
const (
	Sample = Kind(activityActivityKindACTIVITY_SAMPLE) // the thread was at PC
	Off    = Kind(activityActivityKindACTIVITY_OFF)    // it leaves the processor
	On     = Kind(activityActivityKindACTIVITY_ON)     // it runs again
	Begin  = Kind(activityActivityKindACTIVITY_CALL)   // it begins a system call
	End    = Kind(activityActivityKindACTIVITY_RETURN) // it has ended the system call

	Use  = Kind(activityActivityKindACTIVITY_FILE_USE)  // another process uses a file that the process has open
	Done = Kind(activityActivityKindACTIVITY_FILE_DONE) // the other process has ended that
)

// Event is an event of a thread.
type Event struct {
	Kind   Kind
	Time   uint64 // ns of CLOCK_MONOTONIC
	TID    uint32
	PC     uint64  // program counter; 0 if unknown. In the kernel, the place of entry into it
	Call   *Call   // Begin, End: which system call
	Result int64   // End, Done: the value that the kernel returns, a negative error number if it failed; Begin: a bit for each text that could not be read
	User   uint32  // Use, Done: the other process, to which TID belongs; both are 0 if the tracer's PID namespace has no numbers for them
	Access *Access // Use

	args  [activityArguments]uint64
	texts [activityTexts]string
}

const (
	activityArguments = len(activityActivityCall{}.Args)
	activityTexts     = len(activityActivityCall{}.Text)
	textBytes         = len(activityActivityCall{}.Text[0])
	headSize          = int(unsafe.Sizeof(activityActivity{}))
	callSize          = int(unsafe.Offsetof(activityActivityCall{}.Text))
)

// Argument is an argument of a system call.
type Argument struct {
	Letter byte // in SWAP's letters: d, x, p or s
	Number uint64
	Text   string // for letter s
}

// Arguments appends the arguments of a system call to list. A text that was null or not in memory
// becomes the pointer.
func (e *Event) Arguments(list []Argument) []Argument {
	text := 0
	for i := range len(e.Call.letters) {
		a := Argument{Letter: e.Call.letters[i], Number: e.args[i]}
		if a.Letter == 's' {
			if text == activityTexts || e.Result>>text&1 != 0 {
				a.Letter = 'p'
			} else {
				a.Text = e.texts[text]
			}
			text = min(text+1, activityTexts)
		}
		list = append(list, a)
	}
	return list
}

// Decode reads a record of the programs, aligned to 8 bytes. It copies what it keeps. It returns
// false for records that the programs never send.
func (a *Activity) Decode(b []byte, e *Event) bool {
	if len(b) < headSize {
		return false
	}
	head := (*activityActivity)(unsafe.Pointer(unsafe.SliceData(b)))
	*e = Event{Kind: Kind(head.Kind), Time: head.Time, TID: head.Tid, PC: head.Pc, Result: int64(head.Result)}
	switch e.Kind {
	case Sample, Off, On:
		return true
	case Done:
		e.User, e.PC = uint32(head.Pc), 0
		return true
	case Begin, End:
	case Use:
		return decodeAccess(b, e)
	default:
		return false
	}
	if e.Call = a.calls.find(int(head.Abi), int(head.Number)); e.Call == nil {
		return false
	}
	if e.Kind == End {
		return true
	}
	if len(b) < callSize {
		return false
	}
	copy(bytesOf(&e.args), b[headSize:callSize])
	for i := range e.texts {
		at := callSize + i*textBytes
		if len(b) < at+textBytes {
			break
		}
		e.texts[i] = text(b[at : at+textBytes])
	}
	return true
}

func bytesOf(words *[activityArguments]uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(words)), unsafe.Sizeof(*words))
}
