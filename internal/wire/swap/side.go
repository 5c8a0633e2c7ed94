package swap

// Side holds the facts that a reader of a stream needs in addition to the
// stream: those that a host gets in the replies on the control channel. It is
// the object "swap" of a side file (docs/formats/side.md). Every field is
// optional.
type Side struct {
	Version string   `json:"version,omitempty"` // of the protocol
	Start   int64    `json:"start,omitempty"`   // when tracing began, ns since 1970
	CPUs    int      `json:"cpus,omitempty"`    // elements of SYSTEM's lists per processor; 0 unknown
	Devices []string `json:"devices,omitempty"` // names, one for each element of its lists per device
	// APIs names the functions of probe messages by their numbers.
	APIs map[uint32]string `json:"apis,omitempty"`
	// Syscalls names the system calls by the pc in their messages.
	Syscalls map[uint64]string `json:"syscalls,omitempty"`
	// Functions names functions by the pc in their messages.
	Functions map[uint64]string `json:"functions,omitempty"`
}
