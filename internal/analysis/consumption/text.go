package consumption

import (
	"fmt"
	"strconv"
	"strings"
)

// Text formats a position on the axis of the reports: a time of the trace's
// clock as hours, minutes and seconds with milliseconds, or the number of a
// call.
func (s *Span) Text(at int64) string {
	if s.Calls {
		return strconv.FormatInt(at, 10)
	}
	ms := at / millisecond
	return fmt.Sprintf("%02d:%02d:%02d.%03d", ms/3_600_000, ms/60_000%60, ms/1000%60, ms%1000)
}

// Length formats a length of the axis of the reports: seconds, or calls.
func (s *Span) Length(n int64) string {
	if s.Calls {
		if n == 1 {
			return "1 call"
		}
		return strconv.FormatInt(n, 10) + " calls"
	}
	text := fmt.Sprintf("%d.%09d", n/1e9, n%1e9)
	return strings.TrimRight(strings.TrimRight(text, "0"), ".") + " s"
}
