package swap

// Side holds what a reader must know about a stream besides the stream: what the
// replies on the control channel give a host. It is the object "swap" of a side file
// (docs/formats/side.md). Every field is optional.
type Side struct {
	Version string   `json:"version,omitempty"` // of the protocol
	Start   int64    `json:"start,omitempty"`   // when tracing began, ns since 1970
	CPUs    int      `json:"cpus,omitempty"`    // elements of SYSTEM's lists per processor; 0 unknown
	Devices []string `json:"devices,omitempty"` // names, one for each element of its lists per device
	// APIs names the functions of probe messages by their numbers.
	APIs map[uint32]string `json:"apis,omitempty"`
	// Syscalls names the system calls by what their messages have as pc.
	Syscalls map[uint64]string `json:"syscalls,omitempty"`
	// Functions names functions by what their messages have as pc.
	Functions map[uint64]string `json:"functions,omitempty"`
}
