package wrapper

import (
	"fmt"
	"regexp"
	"strings"
)

// Frame is what is known of a frame of a stack. Unknown parts are empty.
type Frame struct {
	Function  string // as in the source, with or without parameters, or as the linker knows it
	Namespace string // of a function whose name lacks it
	File      string // source file
	Module    string // path of the program or library
}

// List decides which frames are those of wrappers. The zero List has the frames that the
// package knows.
type List struct {
	none      bool
	operators bool // only C++'s operator new
	skip      []*regexp.Regexp
}

// None is a List without frames.
var None = &List{none: true}

// Operators is a List of C++'s operator new alone, for commands that imitate other programs.
var Operators = &List{operators: true}

// New returns a List that also has the frames whose function or module matches one of the
// regular expressions.
func New(skip []string) (*List, error) {
	l := new(List)
	for _, text := range skip {
		r, err := regexp.Compile(text)
		if err != nil {
			return nil, fmt.Errorf("%s is no regular expression: %w", text, err)
		}
		l.skip = append(l.skip, r)
	}
	return l, nil
}

// Empty reports whether the List has no frames.
func (l *List) Empty() bool { return l.none }

// Has reports whether a frame is in the List.
func (l *List) Has(f *Frame) bool {
	if l.none {
		return false
	}
	if l.operators {
		return strings.HasPrefix(f.Function, "operator new") || strings.HasPrefix(f.Function, "_Znw") || strings.HasPrefix(f.Function, "_Zna")
	}
	if IsRuntime(f.Module) || inHeaders(f.File) || f.Namespace != "" && isLibrarySpace(f.Namespace) || f.Function != "" && isWrapper(f.Function) {
		return true
	}
	for _, r := range l.skip {
		if f.Function != "" && r.MatchString(f.Function) || f.Module != "" && r.MatchString(f.Module) {
			return true
		}
	}
	return false
}

// First returns the index of the first of n frames that is not in the List. If all are, it is
// the first one that is no function of an allocator, or the last one. n must not be 0.
func (l *List) First(n int, frame func(i int) Frame) int {
	for i := range n {
		if f := frame(i); !l.Has(&f) {
			return i
		}
	}
	for i := range n {
		if f := frame(i); !IsAllocator(f.Function) {
			return i
		}
	}
	return n - 1
}

// inHeaders reports whether a source file is a header of the C++ library, or part of Rust's
// libraries.
func inHeaders(file string) bool {
	return strings.Contains(file, "/include/c++/") || strings.Contains(file, "/c++/v1/") ||
		strings.HasPrefix(file, "/rustc/") && strings.Contains(file, "/library/")
}
