package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// oddPage has texts that must not act as roff or as a shell's words.
func oddPage() *Page {
	return &Page{
		Name: "tool odd", Summary: "it's odd - very", Synopsis: []string{"[flags] FILE", "'quoted'"},
		About:    ".SH is no heading\\n, and 'this' no request.\n\n'second paragraph",
		Lists:    []List{{Title: "List \"of\" two", Rows: []ListRow{{"a-b", ".c"}}}},
		Flags:    []FlagGroup{{Title: "Group", Flags: []Flag{{Long: "long-name", Short: "l", Value: "VALUE", Text: "does [it]: isn't it"}, {Long: "switch", Text: "plain"}}}},
		Examples: []Example{{Does: "do it", Command: "tool odd -l 'x y' | grep '^.'"}},
	}
}

func TestMan(t *testing.T) {
	var b bytes.Buffer
	if err := oddPage().WriteMan(&b, []string{"tool", "other"}); err != nil {
		t.Fatal(err)
	}
	want := `.TH "TOOL\-ODD" 1 "" rtrace-bpf
.nh
.SH NAME
tool\-odd \- it\(aqs odd \- very
.SH SYNOPSIS
.B tool odd
[flags] FILE
.br
.B tool odd
\(aqquoted\(aq
.SH DESCRIPTION
.PP
\&.SH is no heading\en, and \(aqthis\(aq no request.
.PP
\(aqsecond paragraph
.SH "LIST ""OF"" TWO"
.TP
a\-b
\&.c
.SH OPTIONS
.SS "Group"
.TP
\fB\-l\fR, \fB\-\-long\-name\fR \fIVALUE\fR
does [it]: isn\(aqt it
.TP
\fB\-\-switch\fR
plain
.SH EXAMPLES
.PP
Do it:
.PP
.RS 4
.nf
tool odd \-l \(aqx y\(aq | grep \(aq\(ha.\(aq
.fi
.RE
.SH EXIT STATUS
.TP
0
done
.TP
1
failed
.TP
2
the command line is wrong
.TP
3
done, but the input is incomplete: it was cut, its tracer did not finish, or it has records that cannot be read
.TP
141
the reader of the output went away, as head does
.SH SEE ALSO
.BR tool (1),
.BR other (1)
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// offering has flags for whose values a shell offers something.
func offering() *Page {
	p := oddPage()
	p.Flags[0].Flags = append(p.Flags[0].Flags, []Flag{
		{Long: "file", Value: "FILE", Text: "f", Offer: Offer{Things: OfferFiles}},
		{Long: "dir", Value: "DIR", Text: "d", Offer: Offer{Things: OfferFolders}},
		{Long: "pid", Short: "p", Value: "PID", Text: "p", Offer: Offer{Things: OfferProcesses, Separator: ","}},
		{Long: "comm", Value: "NAME", Text: "c", Offer: Offer{Things: OfferCommands}},
		{Long: "user", Value: "USER", Text: "u", Offer: Offer{Things: OfferUsers}},
		{Long: "word", Value: "WORD", Text: "w", Offer: Offer{Things: OfferWords, Words: []string{"a", "b"}}},
		{Long: "list", Value: "LIST", Text: "l", Offer: Offer{Things: OfferWords, Words: []string{"a", "b"}, Separator: ":"}},
		{Long: "maybe", Value: "WORD", Text: "m", Optional: true, Offer: Offer{Things: OfferWords, Words: []string{"a", "b"}}},
	}...)
	return p
}

func TestScripts(t *testing.T) {
	p := Program{
		Page: &Page{Name: "tool", Summary: "a tool"}, Subcommands: []*Page{offering()},
		Links: map[string]string{"tool-odd": "odd"},
	}
	for name, tt := range map[string]struct {
		got  string
		want []string
	}{
		"bash": {p.Bash(), []string{
			"    odd) flags='--long-name -l --switch --file --dir --pid -p --comm --user --word --list --maybe' ;;\n", "    tool-odd) subcommand=odd ;;\n", "complete -F _tool tool tool-odd\n",
			"    odd--long-name= | odd--long-name | odd-l) offer=nothing ;;\n", "    odd--pid= | odd--pid | odd-p) offer=processes separator=, ;;\n",
			"    odd--list= | odd--list) offer=words words='a b' separator=: ;;\n", "    odd--maybe=) offer=words words='a b' ;;\n",
		}},
		"zsh": {p.Zsh(), []string{
			"#compdef tool tool-odd\n", `'--long-name=[does \[it\]\: isn'\''t it]:VALUE: '`, `'-l[does \[it\]\: isn'\''t it]:VALUE: '`,
			"'--file=[f]:FILE:_files'", "'--dir=[d]:DIR:_files -/'", "'-p[p]:PID:_sequence _pids'", "'--comm=[c]:NAME:_process_names -a'", "'--user=[u]:USER:_users'",
			"'--word=[w]:WORD:(a b)'", "'--list=[l]:LIST:_values -s : value a b'", "'--maybe=-[m]::WORD:(a b)'", `'odd:it'\''s odd - very'`,
		}},
		"fish": {p.Fish(), []string{
			`complete -c tool -n '__fish_seen_subcommand_from odd' -l long-name -s l -x -d 'does [it]: isn\'t it'` + "\n",
			"complete -c tool-odd -l file -r -F -d 'f'\n", "complete -c tool-odd -l dir -x -a '(__fish_complete_directories)' -d 'd'\n", "complete -c tool-odd -l pid -s p -x -a '(__fish_complete_pids)' -d 'p'\n",
			"complete -c tool-odd -l user -x -a '(__fish_complete_users)' -d 'u'\n", "complete -c tool-odd -l word -x -a 'a b' -d 'w'\n",
			"complete -c tool-odd -l list -x -a '(__fish_complete_list : \"string split , a,b\")' -d 'l'\n", "complete -c tool-odd -l maybe -f -a 'a b' -d 'm'\n",
			"complete -c tool-odd -l switch -d 'plain'\n", `complete -c tool -n __fish_use_subcommand -f -a odd -d 'it\'s odd - very'` + "\n",
		}},
	} {
		for _, w := range tt.want {
			if !strings.Contains(tt.got, w) {
				t.Errorf("%s has no %q:\n%s", name, w, tt.got)
			}
		}
	}
	alone := Program{Page: &Page{Name: "tool-x", Flags: oddPage().Flags}}
	if got := alone.Bash(); !strings.Contains(got, "_tool_x() {\n") || !strings.Contains(got, "flags='--long-name -l --switch'\n") || strings.Contains(got, "subcommand in") {
		t.Errorf("bash:\n%s", got)
	}
	if got := alone.Zsh(); !strings.Contains(got, "_arguments -s -S") || strings.Contains(got, "case") {
		t.Errorf("zsh:\n%s", got)
	}
}

// A command line that begins with a flag is that of the default subcommand.
func TestDefaultSubcommand(t *testing.T) {
	starts := offering()
	starts.Command = true
	p := Program{
		Page: &Page{Name: "tool", Command: true}, Subcommands: []*Page{starts, {Name: "tool even", Flags: oddPage().Flags}},
		Default: "odd", Topics: []string{"subject"},
	}
	for shell, tt := range map[string]struct {
		got  string
		want []string
	}{
		"bash": {p.Bash(), []string{
			"if ((COMP_CWORD == 1)) && [[ $cur != -* ]]; then\n", "[[ $subcommand != -* ]] || subcommand=odd\n", "compgen -W 'odd even subject' ",
			"    case $subcommand in\n    odd)\n        for ((i = 1; ", "    *) offer=nothing ;;\n",
		}},
		"zsh": {p.Zsh(), []string{
			"if ((CURRENT == 2)) && [[ ${words[2]} != -* ]]; then\n", "if [[ ${words[2]} == -* ]]; then\n            subcommand=odd\n        else\n            subcommand=${words[2]}\n",
			"'*::command:_normal'", "    help) _values topic odd even subject ;;\n",
		}},
		"fish": {p.Fish(), []string{
			"complete -c tool -n 'not __fish_seen_subcommand_from help even' -l file -r -F -d 'f'\n", "complete -c tool -n '__fish_seen_subcommand_from even' -l switch -d 'plain'\n",
			"complete -c tool -n '__fish_seen_subcommand_from help' -f -a 'odd even subject'\n",
		}},
	} {
		for _, w := range tt.want {
			if !strings.Contains(tt.got, w) {
				t.Errorf("%s has no %q:\n%s", shell, w, tt.got)
			}
		}
	}
}

// Flags of a topic have its text and examples, as text, on a page and in a manual.
func TestTopicText(t *testing.T) {
	p := Page{Name: "tool", Summary: "a tool", Flags: []FlagGroup{{
		Title: "One part", About: "First paragraph.\n\nSecond one.", Usage: "  -x  do it\n", Examples: []Example{{Does: "see it", Command: "tool -x"}},
	}}}
	var text, markdown, man, topic bytes.Buffer
	for _, err := range []error{p.WriteText(&text), p.WriteMarkdown(&markdown), p.WriteMan(&man, nil), p.WriteHelp(&topic, "one-part")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	const part = "One part:\n  First paragraph.\n\n  Second one.\n\n  -x  do it\n\n  see it:\n      tool -x\n"
	for _, test := range []struct{ got, want string }{
		{text.String(), part},
		{topic.String(), part},
		{markdown.String(), "## One part\n\nFirst paragraph.\n\nSecond one.\n\n```\n  -x  do it\n```\n\nSee it:\n\n```\ntool -x\n```\n"},
		{man.String(), ".SS \"One part\"\n.PP\nFirst paragraph.\n.PP\nSecond one.\n"},
		{man.String(), ".SH EXAMPLES\n.PP\nSee it:\n"},
	} {
		if !strings.Contains(test.got, test.want) {
			t.Errorf("%q is missing in\n%s", test.want, test.got)
		}
	}
}

func TestGenerate(t *testing.T) {
	p := Program{Page: &Page{Name: "tool", Summary: "a tool"}, Subcommands: []*Page{oddPage()}}
	dir := t.TempDir()
	if err := p.Generate(dir, "friend"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"man/man1/tool.1": ".BR friend (1),\n.BR tool\\-odd (1)\n", "man/man1/tool-odd.1": ".BR friend (1),\n.BR tool (1)\n",
		"bash-completion/completions/tool": "complete ", "zsh/site-functions/_tool": "#compdef tool\n", "fish/vendor_completions.d/tool.fish": "complete -c tool ",
	} {
		b, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v\n%s", name, err, b)
		}
	}
	if err := p.Generate(filepath.Join(dir, "man", "man1", "tool.1")); err == nil {
		t.Error("a file was taken for a folder")
	}
}
