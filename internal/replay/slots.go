package replay

// slot is a place for a block. A free slot is in two lists, that of the thread
// that freed it and that of all threads, each in the order of the frees.
type slot struct {
	thread uint32 // thread that used it last
	at     uint32 // index of that thread's word
	own    link
	all    link
}

// link holds the neighbours in a list, as numbers of slots plus one; 0 is none.
type link struct{ older, newer uint32 }

// list is a list of free slots, as numbers plus one; 0 is none.
type list struct{ oldest, newest uint32 }

// slackPerThread is the number of slots beyond the peak of live blocks for each
// of the first slackThreads threads. With them threads take over fewer slots
// from each other and wait less.
const (
	slackPerThread = 256
	slackThreads   = 64
)

// slots holds all slots.
type slots struct {
	slots []slot
	free  list // of all threads
}

// own and all select the links of a list.
func own(s *slot) *link { return &s.own }
func all(s *slot) *link { return &s.all }

func (t *slots) push(l *list, which func(*slot) *link, n uint32) {
	*which(&t.slots[n]) = link{older: l.newest}
	if l.newest != 0 {
		which(&t.slots[l.newest-1]).newer = n + 1
	} else {
		l.oldest = n + 1
	}
	l.newest = n + 1
}

func (t *slots) remove(l *list, which func(*slot) *link, n uint32) {
	k := *which(&t.slots[n])
	if k.older != 0 {
		which(&t.slots[k.older-1]).newer = k.newer
	} else {
		l.oldest = k.newer
	}
	if k.newer != 0 {
		which(&t.slots[k.newer-1]).older = k.older
	} else {
		l.newest = k.older
	}
}

// add returns a new slot.
func (t *slots) add() uint32 {
	t.slots = append(t.slots, slot{})
	return uint32(len(t.slots) - 1)
}
