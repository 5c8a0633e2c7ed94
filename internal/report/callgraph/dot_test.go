package callgraph_test

import (
	"fmt"
	"strings"
	"unicode"
)

// checkDot parses a directed graph according to the grammar of dot
// (https://graphviz.org/doc/info/lang.html), without ports and HTML. It returns
// the labels of nodes and the number of arrows.
func checkDot(text string) (labels map[string]string, arrows int, err error) {
	p := &dotParser{labels: make(map[string]string)}
	if p.tokens, err = dotTokens(text); err != nil {
		return nil, 0, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("token %d: %v", p.at, r)
		}
	}()
	p.expect("digraph")
	p.id()
	p.block()
	if p.at != len(p.tokens) {
		panic("text after the graph")
	}
	return p.labels, p.arrows, nil
}

// dotToken is a word, a string without its quotes, or an operator.
type dotToken struct {
	text   string
	quoted bool
}

func dotTokens(text string) ([]dotToken, error) {
	var out []dotToken
	for line := 1; text != ""; {
		switch c := rune(text[0]); {
		case c == '\n':
			line++
			text = text[1:]
			if strings.HasPrefix(text, "#") {
				_, text, _ = strings.Cut(text, "\n")
				text = "\n" + text
			}
		case unicode.IsSpace(c):
			text = text[1:]
		case c == '#' && len(out) == 0: // the first line
			_, text, _ = strings.Cut(text, "\n")
			text = "\n" + text
		case strings.HasPrefix(text, "->"):
			out, text = append(out, dotToken{text: "->"}), text[2:]
		case strings.ContainsRune("{}[]=;,", c):
			out, text = append(out, dotToken{text: text[:1]}), text[1:]
		case c == '"':
			i := 1
			for ; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
				if i < len(text) && text[i] == '\n' {
					return nil, fmt.Errorf("line %d: a string contains a line break", line)
				}
			}
			if i >= len(text) {
				return nil, fmt.Errorf("line %d: a string has no end", line)
			}
			out, text = append(out, dotToken{text[1:i], true}), text[i+1:]
		default:
			n := strings.IndexFunc(text, func(r rune) bool {
				return r != '_' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
			})
			if n <= 0 {
				return nil, fmt.Errorf("line %d: %q", line, text[:min(10, len(text))])
			}
			out, text = append(out, dotToken{text: text[:n]}), text[n:]
		}
	}
	return out, nil
}

type dotParser struct {
	tokens []dotToken
	at     int
	labels map[string]string
	arrows int
}

func (p *dotParser) next() dotToken {
	p.at++
	return p.tokens[p.at-1]
}

func (p *dotParser) is(sign string) bool {
	if t := p.tokens[p.at]; t.quoted || t.text != sign {
		return false
	}
	p.at++
	return true
}

func (p *dotParser) expect(sign string) {
	if !p.is(sign) {
		panic(fmt.Sprintf("%q, not %q", p.tokens[p.at].text, sign))
	}
}

func (p *dotParser) id() string {
	t := p.next()
	if !t.quoted && strings.ContainsAny(t.text, "{}[]=;,->") {
		panic("no name: " + t.text)
	}
	return t.text
}

func (p *dotParser) block() {
	p.expect("{")
	for !p.is("}") {
		if p.is("subgraph") {
			p.id()
			p.block()
			continue
		}
		name := p.id()
		switch {
		case p.is("="):
			p.id()
		case p.is("->"):
			p.arrows++
			p.labels[name] += ""
			p.labels[p.id()] += ""
			p.attributes("")
		default:
			p.attributes(name)
		}
		p.is(";")
	}
}

func (p *dotParser) attributes(node string) {
	if !p.is("[") {
		return
	}
	for !p.is("]") {
		key := p.id()
		p.expect("=")
		value := p.id()
		if key == "label" {
			p.labels[node] = value
		}
		if !p.is(",") {
			p.is(";")
		}
	}
}
