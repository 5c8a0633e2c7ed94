package functions

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Place is a place in the code of a file.
type Place struct {
	Library string // path or base name of a file; empty for the program itself
	Symbol  string // as in symbol tables or in the source; empty for an address
	// Offset is the distance from the symbol in bytes, or the address as in symbol tables.
	Offset uint64
}

// String returns the place in the form in which the user writes it.
func (p Place) String() string {
	switch {
	case p.Symbol == "":
		return fmt.Sprintf("%s:+%#x", p.Library, p.Offset)
	case p.Offset != 0:
		return fmt.Sprintf("%s:%s+%#x", p.Library, p.Symbol, p.Offset)
	}
	return p.Library + ":" + p.Symbol
}

// Function is a function whose calls are recorded.
type Function struct {
	Place
	Args   string // a letter for each argument
	Result byte   // letter; 0: only entries are recorded

	// For functions of package modules.
	Module int // its number there, from 1; 0: the user has named the function
	// Owner is empty for functions of C libraries and similar. Calls made inside a function with
	// the same owner do not count.
	Owner string
	Stack bool // record the stack too: at the return, or at the entry if only that is recorded
	Out   int  // argument that points to what the call writes, from 1; 0: none
	Wrote int  // number of these bytes, at most MaxOut
	Via   int  // word of these bytes that points to the wanted data, followed by its length; 0: the bytes are the data

	// Passed is set if other functions of the module may pass their calls on to this one by a
	// jump, perhaps to a place after its first instruction. The receiver of the events must
	// ignore those.
	Passed bool

	Follow int     // argument that Steps start from, from 1; FollowResult; 0: none
	Steps  []int64 // words from the last address to the pointer, or value, to read next
	Extra  int     // words from the argument's address to one more word to record; 0: none
}

// FollowResult is the value of Function.Follow for pointers that start at the result.
const FollowResult = -1

// Letters of arguments, as in SWAP. The last two are for 32-bit programs, which pass
// floating-point numbers on the stack.
const (
	argumentLetters = "bcdxpsfw"
	resultLetters   = "bcdxpsvn"
	floatLetters    = "fw"
	arrayLetters    = "DFW"
	// countedLetter is for package modules: as many bytes as the next argument counts.
	countedLetter = 'B'
	// So are these: a text, or a text with characters of four bytes, of which only the length is
	// recorded. A function with one of them has no other texts.
	measuredLetter, wideLetter = 'L', 'U'
)

// Limits of what is recorded of a call.
const (
	MaxArguments = len(functionsCallEntry{}.Words) // words: a w of a 32-bit program takes two
	MaxTexts     = len(functionsCallSite{}.Text)
	MaxValue     = len(functionsCallValue{}.Data) // bytes
	MaxOut       = 64                             // bytes, OUT_BYTES in bpf/functions.h
)

// ErrFloats refuses floating-point numbers in registers.
var ErrFloats = errors.New("floating point numbers are in vector registers, which probes cannot read: " +
	"leave their letters out, the other arguments keep their places")

// ParseFunction parses LIB:SYM(ARGS)RET.
func ParseFunction(text string) (f Function, err error) {
	wrong := func(format string, args ...any) (Function, error) {
		return Function{}, fmt.Errorf("%q: %s", text, fmt.Sprintf(format, args...))
	}
	// Names of C++ functions may contain parentheses as well.
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
		return wrong("the result %s: probes cannot read floating-point registers; use n to record the end without it", result)
	case !strings.Contains(resultLetters, result):
		return wrong("unknown letter %q of a result (known: %s)", result, spaced(resultLetters))
	default:
		f.Result = result[0]
	}
	return f, nil
}

func spaced(letters string) string { return strings.Join(strings.Split(letters, ""), " ") }

// parsePlace parses LIB:SYM, LIB:SYM+0xOFFSET or LIB:+0xADDR.
func parsePlace(text string) (Place, error) {
	lib, symbol, ok := strings.Cut(text, ":")
	p := Place{Library: lib, Symbol: symbol}
	if !ok || symbol == "" || strings.HasPrefix(symbol, ":") {
		return p, errors.New("LIB: is missing before the function; for the program itself leave LIB empty, as in :main")
	}
	at := strings.LastIndex(symbol, "+0x")
	if at < 0 {
		return p, nil
	}
	var err error
	if p.Offset, err = strconv.ParseUint(symbol[at+3:], 16, 64); err != nil {
		return p, fmt.Errorf("%q is not a hexadecimal number", symbol[at+1:])
	}
	p.Symbol = symbol[:at]
	return p, nil
}

// Check returns an error if the letters are invalid for programs of this kind.
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

// Reads reports whether memory that arguments point to is read when a call begins.
func (f *Function) Reads() bool {
	return f.Follow > 0 || f.Measures() || strings.IndexByte(f.Args, 's') >= 0 || strings.IndexByte(f.Args, countedLetter) >= 0
}

// Measures reports whether the length of a text is recorded.
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
