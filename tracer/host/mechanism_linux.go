package host

// Mechanism is a way to attach probes.
type Mechanism uint8

// The mechanisms.
const (
	MechanismAuto  Mechanism = iota // the best one that works here
	MechanismMulti                  // uprobe_multi links (kernel 6.6)
	MechanismPerf                   // one perf event per probe
)

// String returns the mechanism's name as flags and rtrace-bpf plan spell it.
func (m Mechanism) String() string { return [...]string{"auto", "multi", "perf"}[m] }
