package testutil

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// DocumentedCommand is a command line in a document for users.
type DocumentedCommand struct {
	Where string
	Words []string // its program's name first
}

// DocumentedCommands returns the command lines of a program in README.md and those pages of
// docs/ that are not generated from help, both in code blocks and in code within text.
func DocumentedCommands(t testing.TB, program string) (all []DocumentedCommand) {
	t.Helper()
	root := Root(t)
	files, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"formats", "design"} {
		more, err := filepath.Glob(filepath.Join(root, "docs", folder, "*.md"))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, more...)
	}
	for _, file := range append(files, filepath.Join(root, "README.md")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range codeIn(string(text)) {
			for _, words := range CommandLines(code) {
				if words[0] == program {
					all = append(all, DocumentedCommand{filepath.Base(file) + ": " + code, words})
				}
			}
		}
	}
	return all
}

// codeIn returns the lines of blocks of code in a page of Markdown, and the code in its text.
func codeIn(page string) (all []string) {
	fenced, text := false, ""
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			all = append(all, strings.TrimSpace(line))
		default:
			text += line
		}
	}
	for _, code := range codes(text) {
		all = append(all, strings.ReplaceAll(code, "\n", " "))
	}
	return all
}

// CommandLines returns the commands of a shell line, without sudo, each up to its comment or
// redirection.
func CommandLines(line string) (all [][]string) {
	for _, words := range split(line) {
		if len(words) > 0 && words[0] == "sudo" {
			words = words[1:]
		}
		if len(words) > 0 {
			all = append(all, words)
		}
	}
	return all
}

// split splits a line like a shell, as far as documents need it.
func split(line string) (all [][]string) {
	var words []string
	word, quote, some := "", rune(0), false
	end := func() {
		if some {
			words = append(words, word)
		}
		word, some = "", false
	}
	for i, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
			word += string(c)
		case c == '\'' || c == '"':
			quote, some = c, true
		case c == ' ':
			end()
		case c == '#' && !some && i > 0:
			return append(all, words)
		case strings.ContainsRune("|;&<>()", c):
			end()
			all, words = append(all, words), nil
		default:
			word, some = word+string(c), true
		}
	}
	end()
	return append(all, words)
}

// UnlistedFlags returns the flags of a command line that are not in the help of its
// command. words are its arguments.
func UnlistedFlags(page *cli.Page, words []string) (unlisted []string) {
	flags := map[string]cli.Flag{}
	for _, g := range page.Flags {
		for _, f := range g.Flags {
			flags["--"+f.Long] = f
			if f.Short != "" {
				flags["-"+f.Short] = f
			}
		}
	}
	for i := 0; i < len(words) && words[i] != "--"; i++ {
		word := strings.TrimRight(words[i], ",.:…")
		switch {
		case strings.HasPrefix(word, "--"):
			name, _, valued := strings.Cut(word, "=")
			f, ok := flags[name]
			if !ok {
				unlisted = append(unlisted, name)
			}
			if f.Value != "" && !f.Optional && !valued {
				i++
			}
		case len(word) > 1 && word[0] == '-':
			for n, c := range word[1:] {
				f, ok := flags["-"+string(c)]
				if !ok {
					unlisted = append(unlisted, "-"+string(c))
				}
				if !ok || f.Value != "" && !f.Optional {
					if n+2 == len(word) {
						i++
					}
					break
				}
			}
		}
	}
	return slices.Compact(unlisted)
}
