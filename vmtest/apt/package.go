package apt

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Package is a package of a suite.
type Package struct {
	Name    string
	Version string
	File    string // in the archive
	Size    int64  // of the file, in bytes
	Summary string
}

// parsePackages reads the output of apt-cache search --full.
func parsePackages(r io.Reader) ([]Package, error) {
	paragraphs, err := readParagraphs(r)
	if err != nil {
		return nil, fmt.Errorf("read the output of apt-cache: %w", err)
	}
	all := make([]Package, 0, len(paragraphs))
	for _, p := range paragraphs {
		size, err := strconv.ParseInt(p["size"], 10, 64)
		if err != nil || p["package"] == "" || p["version"] == "" {
			return nil, fmt.Errorf("read the output of apt-cache: package %q, version %q, size %q", p["package"], p["version"], p["size"])
		}
		summary := p["description"]
		if summary == "" {
			summary = p["description-en"]
		}
		all = append(all, Package{Name: p["package"], Version: p["version"], File: p["filename"], Size: size, Summary: summary})
	}
	return all, nil
}

// CompareVersions orders versions as Debian's policy does (deb-version(7)).
func CompareVersions(a, b string) int {
	ea, a := epoch(a)
	eb, b := epoch(b)
	if ea != eb {
		return cmp.Compare(ea, eb)
	}
	ua, ra := revision(a)
	ub, rb := revision(b)
	if c := compareParts(ua, ub); c != 0 {
		return c
	}
	return compareParts(ra, rb)
}

func epoch(v string) (n int, rest string) {
	if before, after, ok := strings.Cut(v, ":"); ok {
		if n, err := strconv.Atoi(before); err == nil {
			return n, after
		}
	}
	return 0, v
}

func revision(v string) (upstream, debian string) {
	if i := strings.LastIndexByte(v, '-'); i >= 0 {
		return v[:i], v[i+1:]
	}
	return v, ""
}

// compareParts compares runs of other characters and runs of digits in turn.
func compareParts(a, b string) int {
	for a != "" || b != "" {
		i, j := 0, 0
		for {
			inA, inB := i < len(a) && !digit(a[i]), j < len(b) && !digit(b[j])
			if !inA && !inB {
				break
			}
			if c := cmp.Compare(weight(a, i), weight(b, j)); c != 0 {
				return c
			}
			i, j = i+1, j+1
		}
		a, b = a[min(i, len(a)):], b[min(j, len(b)):]
		na, restA := number(a)
		nb, restB := number(b)
		if c := cmp.Or(cmp.Compare(len(na), len(nb)), cmp.Compare(na, nb)); c != 0 {
			return c
		}
		a, b = restA, restB
	}
	return 0
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// weight returns the sort order of a character: a tilde before the end, letters before all
// others.
func weight(s string, i int) int {
	switch {
	case i >= len(s) || digit(s[i]):
		return 0
	case s[i] == '~':
		return -1
	case 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z':
		return int(s[i])
	}
	return int(s[i]) + 256
}

// number splits off a run of digits, and returns it without leading zeros.
func number(s string) (digits, rest string) {
	n := 0
	for n < len(s) && digit(s[n]) {
		n++
	}
	return strings.TrimLeft(s[:n], "0"), s[n:]
}
