package flags

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
)

// Word returns a value that is one of a few words, at first the one given, which may be
// none of them: empty for none.
func Word(p *string, first string, words ...string) pflag.Value {
	*p = first
	return &oneOf{p: p, words: words, empty: first == ""}
}

type oneOf struct {
	p     *string
	words []string
	empty bool // is it allowed to be
}

var _ pflag.Value = (*oneOf)(nil)

// Set takes one of the words.
func (w *oneOf) Set(text string) error {
	if !slices.Contains(w.words, text) && (text != "" || !w.empty) {
		e := &ValueError{Wrong: "it is none of " + strings.Join(w.words, ", "), Meant: cli.Nearest(text, w.words)}
		if len(w.words) == 1 {
			e.Wrong = "it is not " + w.words[0]
		}
		return e
	}
	*w.p = text
	return nil
}

// String returns the word.
func (w *oneOf) String() string {
	if w.p == nil {
		return ""
	}
	return *w.p
}

// Type is that of texts, whose defaults help shows in quotation marks.
func (w *oneOf) Type() string { return "string" }

// offered is the annotation of flags whose values are words that a shell can offer.
const offered = "rtrace_words"

// Offer says which words a shell offers for the value of a flag that takes others, too,
// or several of them.
func Offer(f *pflag.FlagSet, name string, words ...string) {
	flag := f.Lookup(name)
	if flag.Annotations == nil {
		flag.Annotations = make(map[string][]string)
	}
	flag.Annotations[offered] = words
}

// Words returns the words that the value of a flag can be, or be made of; nil if it can
// be anything.
func Words(f *pflag.Flag) []string {
	if w, ok := f.Value.(*oneOf); ok {
		return w.words
	}
	return f.Annotations[offered]
}
