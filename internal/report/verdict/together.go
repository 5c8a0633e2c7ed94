package verdict

import (
	"fmt"
	"math"

	"rtrace-bpf/internal/analysis/trend"
	"rtrace-bpf/internal/report/figure"
)

// Below returns the function that all call sites of a suspect are in or below.
// stacks holds the function of each frame of their stacks, the innermost first;
// the last common of each are the same. It is empty if its name is not known.
func Below(stacks [][]string, common int) string {
	if len(stacks) == 0 || len(stacks[0]) < common || common == 0 {
		return ""
	}
	caller := stacks[0][len(stacks[0])-common]
	inside := ""
	for i, s := range stacks {
		n := len(s) - common - 1
		if n < 0 || i > 0 && s[n] != inside {
			return caller
		}
		inside = s[n]
	}
	if inside == "" {
		return caller
	}
	return inside
}

// Together returns what call sites that leak together have in common, such as "5
// call sites below handle_request". below is the result of Below.
func Together(sites int, below string) string {
	if below == "" {
		return fmt.Sprintf("%d call sites with a common caller", sites)
	}
	return fmt.Sprintf("%d call sites below %s", sites, below)
}

// Each returns what call sites that leak together leak each time, such as "5
// blocks and 1.2 KiB each time". t is their common trend.
func Each(sites int, t *trend.Trend) string {
	text := fmt.Sprintf("%d blocks", sites)
	if t.Blocks.PerSecond > 0 && t.Live.Bytes > 0 {
		text += " and " + figure.Bytes(uint64(math.Round(t.Bytes.PerSecond/t.Blocks.PerSecond*float64(sites))))
	}
	return text + " each time"
}
