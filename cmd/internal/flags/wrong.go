package flags

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"rtrace-bpf/internal/cli"
)

// ValueError is the error of a flag's value, from its Set. The message of the command line
// also names the flag and the value.
type ValueError struct {
	Wrong string // the problem
	Meant string // the value that was probably meant, or, with a hyphen, another flag and its value; may be empty
	Write string // what to write instead if Meant is empty; may be empty
}

// Error returns the problem and what to write.
func (e *ValueError) Error() string { return e.text("") }

// text returns the same for the value of the given flag.
func (e *ValueError) text(flag string) string {
	switch {
	case strings.HasPrefix(e.Meant, "-"):
		return e.Wrong + "; did you mean " + e.Meant + "?"
	case e.Meant != "":
		return e.Wrong + "; did you mean " + strings.TrimSpace(flag+" "+cli.Word(e.Meant)) + "?"
	case e.Write != "":
		return e.Wrong + "; write " + e.Write
	}
	return e.Wrong
}

// form describes the values of a type.
type form struct {
	wrong   string // problem of a wrong value
	write   string // what to write instead
	example string // a value; empty where each flag has others
}

// forms are those of the types of the flag library and of this package.
var forms = map[string]form{
	"bool":        {"the flag is a switch", "true or false, or nothing", ""},
	"count":       {"not a whole number", "one such as 2", "2"},
	"int":         {"not a whole number", "one such as 10", "10"},
	"uint64":      {"not a whole number from 0 on", "one such as 10", "10"},
	"float64":     {"not a number", "one such as 10 or 2.5", "10"},
	"duration":    {"not a time", "a number and its unit, such as 10s or 5m", "10s"},
	"BYTES":       {"not a size", "bytes such as 4096, or a number with K, M or G such as 8M", "64K"},
	"N":           {"not a number", "one such as 4000 or 4k", "4k"},
	"PID":         {"not a process ID", "a number such as 4711", "4711"},
	"stringSlice": {"not a list", "names with commas between them, without quotation marks", ""},
}

// plainly returns an error of the flag library in the user's words. args are the parsed
// arguments, if known.
func plainly(all *pflag.FlagSet, args []string, err error) error {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknown(all, missing)
	}
	if none, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return valueless(all, args, none.GetFlag())
	}
	if bad, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return fmt.Errorf("%s is not a flag; write flags as --name, --name=VALUE or -n", cli.Word(bad.GetSpecifiedFlag()))
	}
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	flag := bad.GetFlag()
	if refused, ok := errors.AsType[*refusedError](err); ok {
		name := "--" + flag.Name
		if short := flag.Shorthand; short != "" {
			name = "-" + short + ", " + name
		}
		return fmt.Errorf("%s: %w", name, refused)
	}
	if err := oneHyphen(all, args, flag, bad.GetValue()); err != nil {
		return err
	}
	return refuse(flag, typed(all, args, flag), bad.GetValue(), bad.Unwrap())
}

// refuse returns the error of a value.
func refuse(flag *pflag.Flag, name, value string, cause error) error {
	if own, ok := errors.AsType[*ValueError](cause); ok {
		return fmt.Errorf("%s %s: %s", name, cli.Word(value), own.text(name))
	}
	f, ok := forms[flag.Value.Type()]
	if !ok {
		return fmt.Errorf("%s %s: %w", name, cli.Word(value), cause)
	}
	wrong := ValueError{Wrong: f.wrong, Write: f.write}
	if errors.Is(cause, strconv.ErrRange) {
		wrong = ValueError{Wrong: "the number is too large", Write: "a smaller one"}
	}
	if flag.Value.Type() == "bool" {
		return fmt.Errorf("%s=%s: %s", name, value, wrong.text(name))
	}
	return fmt.Errorf("%s %s: %s", name, cli.Word(value), wrong.text(name))
}

// unknown returns the error of an unknown flag, with the flag that was probably meant.
func unknown(all *pflag.FlagSet, e *pflag.NotExistError) error {
	given, written := "--"+e.GetSpecifiedName(), e.GetSpecifiedName()
	if letters := e.GetSpecifiedShortnames(); letters != "" {
		given, _, _ = strings.Cut("-"+letters, "=")
		written = given[1:]
		if len(written) < 3 { // a letter, or two of a cluster
			given = "-" + e.GetSpecifiedName()
			written = ""
		}
	}
	var names []string
	all.VisitAll(func(f *pflag.Flag) {
		if !isHidden(f) {
			names = append(names, f.Name)
		}
	})
	return &UnknownError{Flag: given, Meant: cli.Nearest(written, names)}
}

// UnknownError is the error of a flag that does not exist.
type UnknownError struct {
	Flag  string // as it was written, with its hyphens and without a value
	Meant string // long name of the flag that was probably meant; may be empty
}

// Error returns the flag, and the one that was probably meant.
func (e *UnknownError) Error() string {
	if e.Meant != "" {
		return fmt.Sprintf("unknown flag %s; did you mean --%s?", cli.Word(e.Flag), e.Meant)
	}
	return "unknown flag " + cli.Word(e.Flag)
}

// oneHyphen returns the error of a long name with one hyphen, such as -pid, which the
// library parses as short names. It is nil if there is none.
func oneHyphen(all *pflag.FlagSet, args []string, flag *pflag.Flag, value string) error {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		if name := longName(all, arg); name != "" && name[:1] == flag.Shorthand && strings.HasSuffix(arg, value) {
			return twoHyphens(name)
		}
	}
	return nil
}

// swallowed returns the error of a long name with one hyphen that the library would parse as
// a short name and its value, such as -output as -o utput.
func swallowed(all *pflag.FlagSet, args []string) error {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		name := longName(all, arg)
		if len(name) < 4 {
			continue
		}
		if short := all.ShorthandLookup(name[:1]); short != nil && short.NoOptDefVal == "" {
			return twoHyphens(name)
		}
	}
	return nil
}

// longName returns the long name after a single hyphen, or "".
func longName(all *pflag.FlagSet, arg string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(arg, "-"), "=")
	if len(name) < 2 || !strings.HasPrefix(arg, "-") || strings.HasPrefix(arg, "--") || all.Lookup(name) == nil {
		return ""
	}
	return name
}

func twoHyphens(name string) error {
	return fmt.Errorf("-%s: long names have two hyphens; did you mean --%s?", name, name)
}

// valueless returns the error of a flag without its value.
func valueless(all *pflag.FlagSet, args []string, flag *pflag.Flag) error {
	name := typed(all, args, flag)
	value, _ := pflag.UnquoteUsage(flag)
	text := fmt.Sprintf("%s: the value is missing; write %s %s", name, name, value)
	if words := Words(flag); len(words) > 0 {
		text += ", such as " + name + " " + words[0]
	} else if f := forms[flag.Value.Type()]; f.example != "" {
		text += ", such as " + name + " " + f.example
	}
	return errors.New(text)
}

// typed returns a flag as the user wrote it.
func typed(all *pflag.FlagSet, args []string, flag *pflag.Flag) string {
	for _, arg := range args {
		if arg == "--" {
			break
		}
		if name, _, _ := strings.Cut(arg, "="); strings.HasPrefix(name, "--") && all.Lookup(name[2:]) == flag {
			return name
		}
	}
	if flag.Shorthand != "" && args != nil {
		return "-" + flag.Shorthand
	}
	return "--" + flag.Name
}
