package verdict

import "rtrace-bpf/internal/analysis/trend"

// Object is a verdict in JSON. Times are nanoseconds since the first call.
type Object struct {
	Verdict  string  `json:"verdict"`
	Growing  bool    `json:"growing"`
	Growth   *Growth `json:"growth,omitempty"`
	Since    *int64  `json:"since,omitempty"` // when the growth or the level began
	Low      uint64  `json:"low"`             // least and most bytes live in the second half of the recording
	High     uint64  `json:"high"`
	Restarts int     `json:"restarts"` // how often the amount grew again after it had fallen by half
}

// Growth is the figures of growth in JSON. Errors are half the width of the
// confidence interval of 95 %.
type Growth struct {
	Blocks      float64 `json:"blocks_per_second"`
	BlocksError float64 `json:"blocks_per_second_error"`
	Bytes       float64 `json:"bytes_per_second"`
	BytesError  float64 `json:"bytes_per_second_error"`
	Age         int64   `json:"age"`       // older blocks pile up
	Old         uint64  `json:"old"`       // live blocks that are older
	FreedOld    uint64  `json:"freed_old"` // blocks that were freed when they were older
}

// ObjectOf returns a trend for JSON, or nil if the trend is unclear.
func ObjectOf(t *trend.Trend) *Object {
	text := Text(t)
	if text == "" {
		return nil
	}
	out := &Object{Verdict: text, Growing: t.Kind == trend.Growing, Low: t.Low, High: t.High, Restarts: t.Restarts}
	if t.Kind == trend.Growing || t.Kind == trend.Level {
		since := t.Since
		out.Since = &since
	}
	if out.Growing {
		out.Growth = &Growth{
			Blocks: t.Blocks.PerSecond, BlocksError: t.Blocks.Error, Bytes: t.Bytes.PerSecond, BytesError: t.Bytes.Error,
			Age: t.Age, Old: t.Old, FreedOld: t.FreedOld,
		}
	}
	return out
}
