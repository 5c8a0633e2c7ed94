package live

// Processes holds something for each process of a trace. Most traces have one.
type Processes[T any] struct {
	all    map[int32]*T
	create func() *T
	pid    int32
	latest *T // of pid
}

// NewProcesses returns a Processes without any; create makes what a new one gets.
func NewProcesses[T any](create func() *T) Processes[T] {
	return Processes[T]{all: make(map[int32]*T), create: create}
}

// Of returns what belongs to a process, made anew if need be.
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

// All is what there is, by the ids of the processes. It must not be changed.
func (p *Processes[T]) All() map[int32]*T { return p.all }

// Concerned returns what a record of a process concerns: what belongs to it, and all
// if the record has no process. In a trace that says only of some records which
// process they are of, a process that is not known is the one without an id.
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

// Drop forgets what a record of a process concerns, and returns that.
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

// IDs is a set of ids of resources, most of which are small. The zero IDs is empty.
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

// Set puts an id into the set, or takes it out.
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
