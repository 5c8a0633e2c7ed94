package topview

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"rtrace-bpf/internal/printable"
)

// safe returns a place whose texts have nothing that acts on a terminal.
func (p *Place) safe() Place {
	out := Place{Function: printable.Name(p.Function), File: printable.Name(p.File), Line: p.Line, Library: printable.Name(p.Library), At: p.At}
	for _, caller := range p.Callers {
		out.Callers = append(out.Callers, printable.Name(caller))
	}
	for _, frame := range p.Stack {
		out.Stack = append(out.Stack, printable.Name(frame))
	}
	for _, f := range p.Frames {
		out.Frames = append(out.Frames, Frame{printable.Name(f.Function), printable.Name(f.Line), printable.Name(f.Offset)})
	}
	return out
}

// Bytes returns a number of bytes in the largest unit that fits, with about three digits.
func Bytes(n uint64) string { return bytesOf(float64(n)) }

// exact returns a power of two in the largest unit, without decimals.
func exact(n uint64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	u := 0
	for n >= 1024 && n%1024 == 0 && u < len(units)-1 {
		n /= 1024
		u++
	}
	return fmt.Sprintf("%d %s", n, units[u])
}

func bytesOf(f float64) string {
	units := [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	u := 0
	for math.Abs(f) >= 1024 && u < len(units)-1 {
		f /= 1024
		u++
	}
	if u == 0 {
		return fmt.Sprintf("%.0f B", f)
	}
	return fmt.Sprintf("%.1f %s", f, units[u])
}

// Count returns a number with about three digits.
func Count(n float64) string {
	for _, u := range [...]string{"", "k", "M", "G"} {
		switch {
		case math.Abs(n) < 999.5 && u == "" && (n == math.Trunc(n) || math.Abs(n) >= 100):
			return fmt.Sprintf("%.0f", n)
		case math.Abs(n) < 999.5:
			return fmt.Sprintf("%.1f%s", n, u)
		}
		n /= 1000
	}
	return fmt.Sprintf("%.0fT", n)
}

// signed returns a change of bytes with its sign. No change has none.
func signed(n float64) string {
	text := bytesOf(n)
	if n > 0 {
		text = "+" + text
	}
	if strings.TrimLeft(text, "+-") == "0 B" {
		return "0 B"
	}
	return text
}

// signedCount is the same for a number.
func signedCount(n int64) string {
	if n > 0 {
		return fmt.Sprintf("+%d", n)
	}
	return fmt.Sprint(n)
}

// clock returns a time as hours, minutes and seconds.
func clock(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// width returns how many columns a text takes.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// wide are the ranges of characters that take two columns (Unicode's East Asian Width, Wide
// and Fullwidth; whole blocks, so that a line is too short rather than too long).
var wide = [][2]rune{
	{0x1100, 0x115f},
	{0x2e80, 0xa4cf},
	{0xa960, 0xa97f},
	{0xac00, 0xd7a3},
	{0xf900, 0xfaff},
	{0xfe30, 0xfe6f},
	{0xff00, 0xff60},
	{0xffe0, 0xffe6},
	{0x16fe0, 0x18aff},
	{0x1b000, 0x1b2ff},
	{0x1f000, 0x1faff},
	{0x20000, 0x3fffd},
}

// columns returns how many columns a character takes.
func columns(r rune) int {
	if r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	for _, w := range wide {
		if r >= w[0] && r <= w[1] {
			return 2
		}
	}
	return 1
}

// head returns the beginning of a text that fits into some columns.
func head(s string, room int) string {
	n := 0
	for i, r := range s {
		if n += columns(r); n > room {
			return s[:i]
		}
	}
	return s
}

// tail returns the end of a text that fits into some columns.
func tail(s string, room int) string {
	all := []rune(s)
	n := 0
	for i, a := range slices.Backward(all) {
		if n += columns(a); n > room {
			return string(all[i+1:])
		}
	}
	return s
}

// bars are the steps of a sparkline, for terminals with and without UTF-8.
var (
	bars      = []rune(" ▁▂▃▄▅▆▇█")
	plainBars = []rune(" .:-=+*%#")
)

// spark returns values as a line of bars, the last one on the right. The largest value has
// the highest bar.
func spark(values []uint64, room int, plain bool) string {
	steps := bars
	if plain {
		steps = plainBars
	}
	values = values[max(0, len(values)-room):]
	var most uint64
	for _, v := range values {
		most = max(most, v)
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", room-len(values)))
	for _, v := range values {
		step := 0
		if v > 0 {
			step = 1 + int(float64(v)/float64(most)*float64(len(steps)-2))
		}
		b.WriteRune(steps[min(step, len(steps)-1)])
	}
	return b.String()
}
