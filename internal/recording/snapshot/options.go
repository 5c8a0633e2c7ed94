package snapshot

import "time"

// Options select snapshots. The zero value selects none.
type Options struct {
	Every  time.Duration // time of events between two snapshots; 0 for none
	Format string        // one of Formats
}

// Formats lists the formats, the default first.
func Formats() []string { return []string{"pprof", "folded", "json"} }

// Least is the shortest time between two snapshots.
const Least = 100 * time.Millisecond

// suffixes are the ends of the names of files, by format.
var suffixes = map[string]string{"pprof": ".pb.gz", "folded": ".folded", "json": ".json"}
