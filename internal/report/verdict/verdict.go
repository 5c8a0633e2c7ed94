// Package verdict puts into words what the blocks of a call site do over time.
package verdict

import (
	"fmt"
	"math"
	"strings"

	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/report/figure"
)

// Text returns a trend in words, such as "growing 28 blocks/s, 14 KiB/s, steady
// since the start; none of 2,300 freed" or "level at 200 blocks since 00:03".
// Times are minutes and seconds since the start of the recording, preceded by
// hours if there are any. It is empty if the trend is unclear.
func Text(t *trend.Trend) string {
	switch t.Kind {
	case trend.Growing:
		return growing(t)
	case trend.Balanced:
		return fmt.Sprintf("%s more %s, but nearly as many blocks from before the recording were freed: record longer", figure.Count(t.Old), since(t))
	case trend.Level:
		return fmt.Sprintf("level at %s %s", blocks(t.Live.Blocks), since(t))
	case trend.Varying:
		text := fmt.Sprintf("varying between %s and %s", figure.Bytes(t.Low), figure.Bytes(t.High))
		if t.Low == t.High {
			text = "changed lately, now " + blocks(t.Live.Blocks)
		}
		if t.Restarts > 0 {
			text += ", grew again after it fell " + times(t.Restarts)
		}
		return text
	case trend.Empty:
		return "no blocks live"
	}
	return ""
}

func growing(t *trend.Trend) string {
	unit, of := "s", 1.0
	for _, x := range []struct {
		unit string
		of   float64
	}{{"min", 60}, {"h", 3600}} {
		if t.Blocks.PerSecond*of < 1 {
			unit, of = x.unit, x.of
		}
	}
	text := fmt.Sprintf("growing %s blocks/%s", decimal(t.Blocks.PerSecond*of), unit)
	if t.Live.Bytes > 0 {
		text += fmt.Sprintf(", %s/%s", figure.Bytes(uint64(math.Round(t.Bytes.PerSecond*of))), unit)
	}
	text += ", steady " + since(t) + "; "
	switch {
	case t.Freed == 0:
		return text + fmt.Sprintf("none of %s freed", figure.Count(t.Allocated))
	case t.FreedOld == 0:
		return text + fmt.Sprintf("none of %s older than %s freed", figure.Count(t.Old), figure.Seconds(uint64(t.Age)))
	}
	return text + fmt.Sprintf("%s of %s older than %s freed", figure.Count(t.FreedOld), figure.Count(t.Old+t.FreedOld), figure.Seconds(uint64(t.Age)))
}

// decimal formats a rate with two significant digits.
func decimal(v float64) string {
	if v >= 9.95 {
		return figure.Count(uint64(math.Round(v)))
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0")
}

// since returns "since 00:03", or "since the start".
func since(t *trend.Trend) string {
	if t.Start {
		return "since the start"
	}
	return "since " + clock(t.Since)
}

func blocks(n uint64) string {
	if n == 1 {
		return "1 block"
	}
	return figure.Count(n) + " blocks"
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
