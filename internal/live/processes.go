package live

// Processes holds a value for each process of a trace. Most traces have one
// process.
type Processes[T any] struct {
	all    map[int32]*T
	create func() *T
	pid    int32
	latest *T // of pid
}

// NewProcesses returns an empty Processes. create returns the value of a new
// process.
func NewProcesses[T any](create func() *T) Processes[T] {
	return Processes[T]{all: make(map[int32]*T), create: create}
}

// Of returns the value of a process, creating it if needed.
func (p *Processes[T]) Of(pid int32) *T {
	if p.latest != nil && p.pid == pid {
		return p.latest
	}
	return p.find(pid)
}

func (p *Processes[T]) find(pid int32) *T {
	t := p.all[pid]
	if t == nil {
		t = p.create()
		p.all[pid] = t
	}
	p.pid, p.latest = pid, t
	return t
}

// All returns the values by process ID. The caller must not change the map.
func (p *Processes[T]) All() map[int32]*T { return p.all }

// Concerned returns the values that a record of a process applies to: the value
// of the process, or all values if the record has no process. In a trace that
// has processes in some records only, an unknown process is the one without an
// ID.
func (p *Processes[T]) Concerned(pid int32) map[int32]*T {
	if pid == 0 {
		return p.all
	}
	if pid > 0 && p.all[pid] == nil {
		pid = 0
	}
	if t := p.all[pid]; t != nil {
		return map[int32]*T{pid: t}
	}
	return nil
}

// Drop removes and returns the values that a record of a process applies to.
func (p *Processes[T]) Drop(pid int32) (gone map[int32]*T) {
	p.latest = nil
	gone = p.Concerned(pid)
	if pid == 0 {
		p.all = make(map[int32]*T)
		return gone
	}
	for id := range gone {
		delete(p.all, id)
	}
	return gone
}

// IDs is a set of resource IDs, most of which are small. The zero IDs is empty.
type IDs struct {
	small uint64
	large map[uint32]bool
}

// Has reports whether an id is in the set.
func (s *IDs) Has(id uint32) bool {
	if id < 64 {
		return s.small>>id&1 != 0
	}
	return s.large[id]
}

// Set adds an ID to the set or removes it.
func (s *IDs) Set(id uint32, in bool) {
	switch {
	case id < 64 && in:
		s.small |= 1 << id
	case id < 64:
		s.small &^= 1 << id
	case in:
		if s.large == nil {
			s.large = make(map[uint32]bool)
		}
		s.large[id] = true
	default:
		delete(s.large, id)
	}
}
