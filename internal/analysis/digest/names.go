package digest

import (
	"strings"

	"rtrace-bpf/trace"
)

// names holds the names of threads and processes.
type names struct {
	threads  map[threadKey]string
	programs map[int32]string
}

type threadKey struct {
	pid    int32
	thread uint64
}

func (n *names) addThread(r *trace.Record) {
	if len(n.threads) < maxNames {
		n.threads[threadKey{r.PID, uint64(uint32(r.TID))}] = strings.Clone(r.Thread.Name)
	}
}

func (n *names) addProgram(r *trace.Record) {
	if len(n.programs) < maxNames {
		n.programs[r.PID] = strings.Clone(r.Process.Name)
	}
}
