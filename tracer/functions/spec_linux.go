package functions

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Place is a place in the code of a file.
type Place struct {
	Library string // path or base name of a file; empty for the program
	Symbol  string // as symbol tables have it, or as in the source; empty for an address
	// Offset is from the symbol, in bytes, or the address as symbol tables have it.
	Offset uint64
}

// String returns the place as the user has written it.
func (p Place) String() string {
	switch {
	case p.Symbol == "":
		return fmt.Sprintf("%s:+%#x", p.Library, p.Offset)
	case p.Offset != 0:
		return fmt.Sprintf("%s:%s+%#x", p.Library, p.Symbol, p.Offset)
	}
	return p.Library + ":" + p.Symbol
}

// Function is one whose calls are told.
type Function struct {
	Place
	Args   string // a letter for each argument
	Result byte   // letter; 0: only its entries are told

	// For those that package modules knows.
	Module int // its number there from 1; 0: the user has named the function
	// Owner is empty for those of C libraries and their like. What others call inside of
	// one with the same owner does not count.
	Owner string
	Stack bool // the stack is told, too: where it returns, or is entered if only that is told
	Out   int  // argument that points to what the call writes, from 1; 0: none
	Wrote int  // bytes of that, at most MaxOut
	Via   int  // word of that which points to what is wanted, before its length; 0: it is that itself

	// Passed is set if others of the module may pass their calls on by a jump, also to a
	// place behind the first instruction: who takes the events leaves those out.
	Passed bool

	Follow int     // argument that Steps lead on from, from 1; FollowResult; 0: none
	Steps  []int64 // words from what was found last to the pointer, or value, to find next
	Beside int     // words from the argument's to one that is wanted, too; 0: none
}

// FollowResult is Function.Follow for pointers that the result leads to.
const FollowResult = -1

// Letters of arguments, those of SWAP; the two last ones are for 32-bit programs, which
// pass floating point numbers on the stack.
const (
	argumentLetters = "bcdxpsfw"
	resultLetters   = "bcdxpsvn"
	floatLetters    = "fw"
	arrayLetters    = "DFW"
	// countedLetter is for package modules: bytes, as many as the next argument says.
	countedLetter = 'B'
	// These, too: a text, or one of characters of four bytes, of which only the length is
	// wanted. There is no text beside one.
	measuredLetter, wideLetter = 'L', 'U'
)

// Limits of what is told of a call.
const (
	MaxArguments = len(functionsCallEntry{}.Words) // words: a w of a 32-bit program is two
	MaxTexts     = len(functionsCallSite{}.Text)
	MaxValue     = len(functionsCallValue{}.Data) // bytes
	MaxOut       = 64                             // bytes, OUT_BYTES in bpf/functions.h
)

// ErrFloats refuses floating point numbers in registers.
var ErrFloats = errors.New("floating point numbers are in vector registers, which probes cannot read: " +
	"leave their letters out, the other arguments keep their places")

// ParseFunction reads LIB:SYM(ARGS)RET.
func ParseFunction(text string) (f Function, err error) {
	wrong := func(format string, args ...any) (Function, error) {
		return Function{}, fmt.Errorf("%q: %s", text, fmt.Sprintf(format, args...))
	}
	// The names of C++ functions may have parentheses, too.
	open, end := strings.LastIndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end < open {
		return wrong("letters of arguments are missing: write LIB:SYM(ARGS)RET, as libc.so.6:open(sd)d")
	}
	f.Args = text[open+1 : end]
	if f.Place, err = parsePlace(text[:open]); err != nil {
		return wrong("%v", err)
	}
	if f.Symbol != "" && f.Offset != 0 {
		return wrong("a function begins at its symbol: name it without +%#x", f.Offset)
	}
	texts := 0
	for i := range len(f.Args) {
		switch letter := f.Args[i]; {
		case strings.IndexByte(arrayLetters, letter) >= 0:
			return wrong("arrays (%c) cannot be read: how long they are is not known; name the pointer, p", letter)
		case strings.IndexByte(argumentLetters, letter) < 0:
			return wrong("unknown letter %q of an argument (known: %s)", letter, spaced(argumentLetters))
		case letter == 's':
			texts++
		}
	}
	if texts > MaxTexts {
		return wrong("more than %d texts: name the others as pointers, p", MaxTexts)
	}
	if len(f.Args) > MaxArguments {
		return wrong("more than %d arguments", MaxArguments)
	}
	switch result := text[end+1:]; {
	case result == "":
	case len(result) > 1:
		return wrong("a function has one result, not %q", result)
	case strings.Contains(floatLetters, result):
		return wrong("the result %s: probes cannot read the registers of floating point numbers; n tells the end without it", result)
	case !strings.Contains(resultLetters, result):
		return wrong("unknown letter %q of a result (known: %s)", result, spaced(resultLetters))
	default:
		f.Result = result[0]
	}
	return f, nil
}

func spaced(letters string) string { return strings.Join(strings.Split(letters, ""), " ") }

// parsePlace reads LIB:SYM, LIB:SYM+0xOFFSET or LIB:+0xADDR.
func parsePlace(text string) (Place, error) {
	lib, symbol, ok := strings.Cut(text, ":")
	p := Place{Library: lib, Symbol: symbol}
	if !ok || symbol == "" || strings.HasPrefix(symbol, ":") {
		return p, errors.New("no LIB: in front of the function; the program itself is an empty one, as :main")
	}
	at := strings.LastIndex(symbol, "+0x")
	if at < 0 {
		return p, nil
	}
	var err error
	if p.Offset, err = strconv.ParseUint(symbol[at+3:], 16, 64); err != nil {
		return p, fmt.Errorf("%q is no hexadecimal number", symbol[at+1:])
	}
	p.Symbol = symbol[:at]
	return p, nil
}

// Check says what is wrong with the letters for programs of this kind.
func (f *Function) Check(narrow bool) error {
	if narrow {
		words := 0
		for i := range len(f.Args) {
			words += wordsOf(f.Args[i], true)
		}
		if words > MaxArguments {
			return fmt.Errorf("%s: more than %d words of arguments", f.Place, MaxArguments)
		}
		return nil
	}
	if i := strings.IndexAny(f.Args, floatLetters); i >= 0 {
		return fmt.Errorf("%s: argument %d (%c): %w", f.Place, i+1, f.Args[i], ErrFloats)
	}
	return nil
}

// Reads says whether what arguments point to is looked at when a call begins.
func (f *Function) Reads() bool {
	return f.Follow > 0 || f.Measures() || strings.IndexByte(f.Args, 's') >= 0 || strings.IndexByte(f.Args, countedLetter) >= 0
}

// Measures says whether the length of a text is wanted.
func (f *Function) Measures() bool {
	return strings.IndexByte(f.Args, measuredLetter) >= 0 || strings.IndexByte(f.Args, wideLetter) >= 0
}

// wordsOf returns how many words an argument takes.
func wordsOf(letter byte, narrow bool) int {
	if letter == 'w' && narrow {
		return 2
	}
	return 1
}
