package flags

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
)

// Word returns a value that accepts a few words. Its initial value may be none of them, such
// as "".
func Word(p *string, first string, words ...string) pflag.Value {
	*p = first
	return &oneOf{p: p, words: words, empty: first == ""}
}

type oneOf struct {
	p     *string
	words []string
	empty bool // the accepted words
}

var _ pflag.Value = (*oneOf)(nil)

// Set accepts one of the words.
func (w *oneOf) Set(text string) error {
	if !slices.Contains(w.words, text) && (text != "" || !w.empty) {
		e := &ValueError{Wrong: "not one of " + strings.Join(w.words, ", "), Meant: cli.Nearest(text, w.words)}
		if len(w.words) == 1 {
			e.Wrong = "not " + w.words[0]
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

// Type is that of texts, so that help shows the default in quotation marks.
func (w *oneOf) Type() string { return "string" }

// Annotations of flags that accept other values, or several: the words that a shell offers,
// the separator of several values, and the kind of the other values.
const (
	offeredWords     = "rtrace_words"
	offeredSeparator = "rtrace_separator"
	offeredCommands  = "rtrace_commands"
)

func annotate(f *pflag.FlagSet, name, key string, values ...string) {
	flag := f.Lookup(name)
	if flag.Annotations == nil {
		flag.Annotations = make(map[string][]string)
	}
	flag.Annotations[key] = values
}

// Offer sets the words that a shell offers for a flag that also accepts others.
func Offer(f *pflag.FlagSet, name string, words ...string) {
	annotate(f, name, offeredWords, words...)
}

// OfferSeveral sets the words that a shell offers for the parts of a flag's value, and their
// separator, a comma or a colon.
func OfferSeveral(f *pflag.FlagSet, name, separator string, words ...string) {
	Offer(f, name, words...)
	annotate(f, name, offeredSeparator, separator)
}

// OfferCommands lets a shell offer the names of processes for a flag's value.
func OfferCommands(f *pflag.FlagSet, name string) { annotate(f, name, offeredCommands, "") }

// Words returns the words that the value of a flag can be or consist of; nil if it can be
// anything.
func Words(f *pflag.Flag) []string {
	if w, ok := f.Value.(*oneOf); ok {
		return w.words
	}
	return f.Annotations[offeredWords]
}

// offer returns what a shell offers for the value of a flag. value is the name of the value
// in its help.
func offer(f *pflag.Flag, value string) cli.Offer {
	if words := Words(f); len(words) > 0 {
		o := cli.Offer{Things: cli.OfferWords, Words: words}
		if separator := f.Annotations[offeredSeparator]; len(separator) > 0 {
			o.Separator = separator[0]
		}
		return o
	}
	if f.Annotations[offeredCommands] != nil {
		return cli.Offer{Things: cli.OfferCommands}
	}
	switch value {
	case "PID":
		o := cli.Offer{Things: cli.OfferProcesses}
		if _, several := f.Value.(*PIDs); several {
			o.Separator = ","
		}
		return o
	case "FILE", "PATH", "OUT":
		return cli.Offer{Things: cli.OfferFiles}
	case "DIR", "DIR|off":
		return cli.Offer{Things: cli.OfferFolders}
	case "USER":
		return cli.Offer{Things: cli.OfferUsers}
	}
	if words := strings.Split(value, "|"); len(words) > 1 { // such as yes|no
		return cli.Offer{Things: cli.OfferWords, Words: words}
	}
	return cli.Offer{}
}
