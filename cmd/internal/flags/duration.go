package flags

import (
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// Duration is a non-negative time on the command line.
type Duration time.Duration

var _ pflag.Value = (*Duration)(nil)

// Set parses one or several numbers with units.
func (d *Duration) Set(text string) error {
	t, err := ParseDuration(text)
	if err == nil {
		*d = Duration(t)
	}
	return err
}

// String returns the time, or "" for 0.
func (d *Duration) String() string {
	if d == nil || *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type is the kind of value for pflag.
func (d *Duration) Type() string { return "duration" }

// units are common spellings of the units of time.ParseDuration.
var units = []struct{ unit, others string }{
	{"s", "sec secs second seconds"},
	{"m", "min mins minute minutes"},
	{"h", "hr hrs hour hours"},
	{"ms", "msec msecs millisecond milliseconds"},
}

// ParseDuration parses one or several numbers with units. Its error is a *ValueError.
func ParseDuration(text string) (time.Duration, error) {
	t, err := time.ParseDuration(text)
	switch {
	case err == nil && t >= 0:
		return t, nil
	case err == nil:
		return 0, &ValueError{Wrong: "a time cannot be negative", Write: "one such as 10s or 5m"}
	}
	plain := strings.ToLower(strings.Join(strings.Fields(text), ""))
	number := strings.TrimRight(plain, "abcdefghijklmnopqrstuvwxyz")
	if _, err := time.ParseDuration(number + "s"); err == nil && !strings.HasPrefix(number, "-") {
		unit := plain[len(number):]
		if unit == "" {
			return 0, &ValueError{Wrong: "a time needs a unit", Meant: number + "s"}
		}
		if unit == "d" || unit == "day" || unit == "days" {
			return 0, &ValueError{Wrong: "the largest unit is the hour", Write: "24h for a day"}
		}
		for _, u := range units {
			if unit == u.unit || strings.Contains(" "+u.others+" ", " "+unit+" ") {
				return 0, &ValueError{Wrong: "not a time", Meant: number + u.unit}
			}
		}
	}
	f := forms["duration"]
	return 0, &ValueError{Wrong: f.wrong, Write: f.write}
}
