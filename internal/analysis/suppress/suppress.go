// Package suppress reads the suppressions of LeakSanitizer and of valgrind, and matches them with
// stacks.
package suppress

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Frame is what is known of a frame of a stack. Unknown parts are empty.
type Frame struct {
	Source string // function as in the source
	Linker string // function as the linker knows it
	File   string // source file
	Module string // path of the program or library
}

// Rule is one suppression.
type Rule struct {
	Name   string  // as in the file
	any    pattern // of LeakSanitizer: a frame has it
	frames []entry // of valgrind: the innermost frames are these
}

// entry is a line of a suppression of valgrind.
type entry struct {
	kind byte // f, o, s: function, object, source file; . for any number of frames
	text string
}

// List holds the rules of files. The zero List is empty.
type List struct {
	Rules  []Rule
	Others int // suppressions of valgrind that are not for leaks
}

// Read adds the rules of a file. The error names the line.
func (l *List) Read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		switch {
		case text == "" || text[0] == '#':
		case text == "{":
			used, err := l.block(lines)
			if n += used; err != nil {
				return fmt.Errorf("line %d: %w", n, err)
			}
		default:
			kind, of, ok := strings.Cut(text, ":")
			if !ok || of == "" {
				return fmt.Errorf("line %d: %q is no suppression; write leak:NAME, or { and } as valgrind does", n, text)
			}
			if kind == "leak" {
				l.Rules = append(l.Rules, Rule{Name: text, any: pattern(of)})
			} else {
				l.Others++ // one of another sanitizer
			}
		}
	}
	return lines.Err()
}

// block reads a suppression of valgrind after its first line. It returns the number of lines.
func (l *List) block(lines *bufio.Scanner) (n int, err error) {
	var texts []string
	for lines.Scan() {
		n++
		text := strings.TrimSpace(lines.Text())
		switch {
		case text == "}":
			return n, l.add(texts)
		case text != "" && text[0] != '#':
			texts = append(texts, text)
		}
	}
	return n, fmt.Errorf("the suppression has no end; write } on a line of its own")
}

// add adds a suppression of valgrind: a name, tools and a kind, and frames.
func (l *List) add(texts []string) error {
	if len(texts) < 2 {
		return fmt.Errorf("a suppression has a name, a line such as Memcheck:Leak, and frames")
	}
	tools, kind, ok := strings.Cut(texts[1], ":")
	if !ok {
		return fmt.Errorf("%q is no kind of suppression; write Memcheck:Leak", texts[1])
	}
	if kind != "Leak" || !slices.Contains(strings.Split(tools, ","), "Memcheck") {
		l.Others++
		return nil
	}
	r := Rule{Name: texts[0]}
	for _, text := range texts[2:] {
		kind, of, _ := strings.Cut(text, ":")
		switch {
		case text == "...":
			r.frames = append(r.frames, entry{kind: '.'})
		case kind == "fun", kind == "obj", kind == "src":
			r.frames = append(r.frames, entry{kind[0], of})
		case kind == "match-leak-kinds":
		default:
			return fmt.Errorf("%q is no frame; write ... or fun:, obj: or src: and a pattern", text)
		}
	}
	if len(r.frames) == 0 {
		return fmt.Errorf("the suppression %s has no frames", r.Name)
	}
	l.Rules = append(l.Rules, r)
	return nil
}

// Match returns the number of the first rule that suppresses a stack, or -1. The frames begin
// with the function of the allocator.
func (l *List) Match(stack []Frame) int {
	return slices.IndexFunc(l.Rules, func(r Rule) bool { return r.matches(stack) })
}

func (r *Rule) matches(stack []Frame) bool {
	if r.any != "" {
		return slices.ContainsFunc(stack, func(f Frame) bool {
			return r.any.in(f.Source) || r.any.in(f.Linker) || r.any.in(f.File) || r.any.in(f.Module)
		})
	}
	return begins(r.frames, stack)
}

// begins reports whether a stack begins with the frames of a suppression.
func begins(want []entry, stack []Frame) bool {
	for len(want) > 0 && want[0].kind != '.' {
		if len(stack) == 0 || !want[0].is(&stack[0]) {
			return false
		}
		want, stack = want[1:], stack[1:]
	}
	if len(want) == 0 {
		return true
	}
	for n := 0; n <= len(stack); n++ {
		if begins(want[1:], stack[n:]) {
			return true
		}
	}
	return false
}

func (e *entry) is(f *Frame) bool {
	switch e.kind {
	case 'f':
		return glob(e.text, f.Linker) || glob(e.text, f.Source)
	case 'o':
		return glob(e.text, f.Module)
	}
	return glob(e.text, f.File)
}
