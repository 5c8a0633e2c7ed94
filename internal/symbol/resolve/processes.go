package resolve

// processes is the address spaces of the traced processes.
type processes struct {
	known map[int32]*Process
	first *Process
	none  *Process // a process without mappings
}

func newProcesses(r *Resolver) processes {
	return processes{known: make(map[int32]*Process), none: &Process{resolver: r}}
}

// get returns the process with the given ID, which it creates if necessary.
func (k *processes) get(pid int32) *Process {
	p, ok := k.known[pid]
	if !ok {
		p = &Process{resolver: k.none.resolver, pid: pid}
		k.known[pid] = p
		if k.first == nil {
			k.first = p
		}
	}
	return p
}

// find returns the process with the given ID. If pid is 0 or unknown, the result is the
// process without an ID, or else the first one.
func (k *processes) find(pid int32) *Process {
	if p, ok := k.known[pid]; ok {
		return p
	}
	if p, ok := k.known[0]; ok {
		return p
	}
	if k.first != nil && (pid == 0 || len(k.known) == 1) {
		return k.first
	}
	return k.none
}
