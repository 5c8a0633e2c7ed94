package testutil

import (
	"bufio"
	"bytes"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Frame is readelf's output for the call frame information of one function.
type Frame struct {
	Section    string // .eh_frame or .debug_frame
	Start, End uint64
	CIE        string // the augmentation of the CIE
	Rows       []FrameRow
	// Expressions holds the instructions with an expression, as readelf prints them:
	// "DW_CFA_def_cfa_expression (DW_OP_breg6 (rbp): -8; DW_OP_deref)".
	Expressions []string
}

// FrameRow is a row as readelf prints it: "rsp+16" or "exp" for the CFA; for a register "c-16"
// where it is saved, "s" if it is unchanged, "u" without a rule.
type FrameRow struct {
	Start     uint64
	CFA       string
	Registers map[string]string // those that the function has rules for
}

var (
	cieLine = regexp.MustCompile(`^([0-9a-f]+) [0-9a-f]+ [0-9a-f]+ CIE(?: "([^"]*)")?`)
	// registerValue is a register in a column: "r1 (rdx)".
	registerValue = regexp.MustCompile(`\br\d+ \((\w+)\)`)
	fdeLine       = regexp.MustCompile(`^[0-9a-f]+ [0-9a-f]+ [0-9a-f]+ FDE cie=([0-9a-f]+) pc=([0-9a-f]+)\.\.([0-9a-f]+)`)
)

// ReadFrames returns the call frame information that readelf finds in a file, in readelf's
// order. It skips the test if readelf is missing.
func ReadFrames(t testing.TB, path string) []Frame {
	t.Helper()
	if _, err := exec.LookPath("readelf"); err != nil {
		t.Skip("SKIP:", err)
	}
	p := framesParser{t: t}
	p.read("frames-interp", path, p.rows)
	interpreted := p.frames()
	p = framesParser{t: t}
	p.read("frames", path, p.expression)
	if len(p.all) != len(interpreted) {
		t.Fatalf("readelf prints %d functions, then %d", len(interpreted), len(p.all))
	}
	for i := range interpreted {
		interpreted[i].Expressions = p.all[i].Expressions
	}
	return interpreted
}

type framesParser struct {
	t       testing.TB
	section string
	all     []*Frame
	parents []*Frame // the CIE of each
	cies    map[string]*Frame
	now     *Frame
	columns []string
}

// read runs readelf and passes each line within an entry to body.
func (p *framesParser) read(what, path string, body func(text string, fields []string)) {
	p.t.Helper()
	out, err := exec.Command("readelf", "-W", "--debug-dump=no-follow-links,"+what, path).Output()
	if err != nil {
		p.t.Fatalf("readelf %s: %v", path, err)
	}
	for in := bufio.NewScanner(bytes.NewReader(out)); in.Scan(); {
		text := in.Text()
		fields := strings.Fields(text)
		switch cie, fde := cieLine.FindStringSubmatch(text), fdeLine.FindStringSubmatch(text); {
		case strings.HasPrefix(text, "Contents of the "):
			p.section, p.cies = fields[3], map[string]*Frame{}
		case cie != nil:
			p.now = &Frame{CIE: cie[2]}
			p.cies[cie[1]] = p.now
		case fde != nil:
			p.begin(fde[1], p.number(fde[2]), p.number(fde[3]))
		case strings.HasSuffix(text, "ZERO terminator"):
		case len(fields) > 1 && p.now != nil:
			body(text, fields)
		}
	}
}

func (p *framesParser) begin(cie string, start, end uint64) {
	parent := p.cies[cie]
	if parent == nil {
		p.t.Fatalf("readelf prints no CIE %s", cie)
	}
	p.now = &Frame{Section: p.section, Start: start, End: end, CIE: parent.CIE}
	p.all, p.parents = append(p.all, p.now), append(p.parents, parent)
}

func (p *framesParser) expression(text string, _ []string) {
	if strings.Contains(text, "expression") {
		p.now.Expressions = append(p.now.Expressions, strings.TrimSpace(text))
	}
}

func (p *framesParser) rows(text string, fields []string) {
	if fields[0] == "LOC" {
		p.columns = fields[2:]
		return
	}
	p.row(strings.Fields(registerValue.ReplaceAllString(text, "$1")))
}

func (p *framesParser) row(fields []string) {
	if len(fields) != len(p.columns)+2 {
		p.t.Fatalf("readelf prints %q for the columns %q", fields, p.columns)
	}
	row := FrameRow{Start: p.number(fields[0]), CFA: fields[1], Registers: map[string]string{}}
	for i, name := range p.columns {
		row.Registers[name] = fields[i+2]
	}
	p.now.Rows = append(p.now.Rows, row)
}

func (p *framesParser) number(hex string) uint64 {
	n, err := strconv.ParseUint(hex, 16, 64)
	if err != nil {
		p.t.Fatalf("readelf prints %q for an address", hex)
	}
	return n
}

// frames gives functions without rows the row of their CIE.
func (p *framesParser) frames() []Frame {
	all := make([]Frame, len(p.all))
	for i, f := range p.all {
		if len(f.Rows) == 0 && len(p.parents[i].Rows) > 0 {
			row := p.parents[i].Rows[0]
			row.Start = f.Start
			f.Rows = []FrameRow{row}
		}
		all[i] = *f
	}
	return all
}
