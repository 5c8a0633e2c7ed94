package apt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mirror is where a system downloads Debian from.
type Mirror struct {
	Archive  string // base URL of the releases
	Security string // base URL of security updates; empty if the system has none
	Keyring  string // that both are signed with; empty for apt's default trust
}

// source is a line of a sources list.
type source struct {
	uri, suite, keyring string
}

// SystemMirror finds Debian's archive among the sources of the system at root: the one whose
// address ends in "/debian". The program itself contains no addresses.
func SystemMirror(root string) (Mirror, error) {
	var files []string
	for _, pattern := range []string{"etc/apt/sources.list", "etc/apt/sources.list.d/*.list", "etc/apt/sources.list.d/*.sources"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return Mirror{}, err
		}
		files = append(files, found...)
	}
	var all []source
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			return Mirror{}, fmt.Errorf("read the system's sources: %w", err)
		}
		parse := parseLines
		if strings.HasSuffix(name, ".sources") {
			parse = parseParagraphs
		}
		found, err := parse(f)
		f.Close()
		if err != nil {
			return Mirror{}, fmt.Errorf("read %s: %w", name, err)
		}
		all = append(all, found...)
	}
	return mirrorOf(all)
}

// SystemRelease returns the code name of the Debian at root. Programs that are compiled there
// cannot run with the libraries of an older release.
func SystemRelease(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "etc", "os-release"))
	if err != nil {
		return "", fmt.Errorf("find out the system's release: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "VERSION_CODENAME=")
		if name = strings.Trim(name, `"`); ok && slices.Contains(kernelSuites.archive, name) {
			return name, nil
		}
	}
	return "sid", nil // newer than all releases that have a name here
}

func mirrorOf(all []source) (Mirror, error) {
	var m Mirror
	for _, s := range all {
		switch name := s.uri[strings.LastIndexByte(s.uri, '/')+1:]; {
		case name == "debian" && m.Archive == "":
			m.Archive, m.Keyring = s.uri, s.keyring
		case name == "debian-security" && m.Security == "":
			m.Security = s.uri
		}
	}
	if m.Archive == "" {
		return m, errors.New("no source of this system is an archive of Debian: kernels are fetched only on Debian; use --vmlinuz")
	}
	return m, nil
}

// parseLines reads the one-line form: deb [options] URI SUITE COMPONENT...
func parseLines(r io.Reader) ([]source, error) {
	var all []source
	in := bufio.NewScanner(r)
	for in.Scan() {
		line, _, _ := strings.Cut(in.Text(), "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb ")
		if !ok {
			continue
		}
		var s source
		rest = strings.TrimSpace(rest)
		if strings.HasPrefix(rest, "[") {
			options, after, _ := strings.Cut(rest[1:], "]")
			rest = after
			for option := range strings.FieldsSeq(options) {
				if name, ok := strings.CutPrefix(option, "signed-by="); ok {
					s.keyring = name
				}
			}
		}
		f := strings.Fields(rest)
		if len(f) < 2 {
			return nil, fmt.Errorf("line %q has no suite", line)
		}
		s.uri, s.suite = strings.TrimRight(f[0], "/"), f[1]
		all = append(all, s)
	}
	return all, in.Err()
}

// parseParagraphs reads the deb822 form.
func parseParagraphs(r io.Reader) ([]source, error) {
	paragraphs, err := readParagraphs(r)
	var all []source
	for _, p := range paragraphs {
		if strings.EqualFold(p["enabled"], "no") || !strings.Contains(" "+p["types"]+" ", " deb ") {
			continue
		}
		keyring := p["signed-by"]
		if !strings.HasPrefix(keyring, "/") {
			keyring = "" // the key is in the file itself
		}
		for uri := range strings.FieldsSeq(p["uris"]) {
			for suite := range strings.FieldsSeq(p["suites"]) {
				all = append(all, source{strings.TrimRight(uri, "/"), suite, keyring})
			}
		}
	}
	return all, err
}

// readParagraphs reads paragraphs of "Name: value" lines into maps with lower-case names.
// Continuation lines are joined with spaces.
func readParagraphs(r io.Reader) ([]map[string]string, error) {
	var all []map[string]string
	var now map[string]string
	last := ""
	in := bufio.NewScanner(r)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		line := in.Text()
		switch {
		case strings.TrimSpace(line) == "":
			now = nil
			continue
		case line[0] == '#':
			continue
		case now == nil:
			now = make(map[string]string)
			all = append(all, now)
			last = ""
		}
		if line[0] == ' ' || line[0] == '\t' {
			now[last] = strings.TrimSpace(now[last] + " " + strings.TrimSpace(line))
			continue
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("line %q has no colon", line)
		}
		last = strings.ToLower(name)
		now[last] = strings.TrimSpace(value)
	}
	return all, in.Err()
}
