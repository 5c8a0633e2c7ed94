package digest

import (
	"strings"

	"rtrace-bpf/internal/analysis/blocks"
	"rtrace-bpf/trace"
)

// names holds the names of threads and processes.
type names struct {
	threads  map[blocks.ThreadKey]string
	programs map[int32]string
}

func (n *names) addThread(r *trace.Record) {
	if len(n.threads) < maxNames {
		n.threads[blocks.ThreadKey{PID: r.PID, ID: uint64(uint32(r.TID))}] = strings.Clone(r.Thread.Name)
	}
}

func (n *names) addProgram(r *trace.Record) {
	if len(n.programs) < maxNames {
		n.programs[r.PID] = strings.Clone(r.Process.Name)
	}
}
