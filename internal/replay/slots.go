package replay

// slot is a place for a block. While it is free, it is in two lists: that of the
// thread which freed it and that of all, each in the order of the frees.
type slot struct {
	thread uint32 // that changed it last
	at     uint32 // which word of the thread that was
	own    link
	all    link
}

// link leads to the neighbours in a list: numbers of slots plus one, 0 for none.
type link struct{ older, newer uint32 }

// list is a list of free slots: numbers plus one, 0 for none.
type list struct{ oldest, newest uint32 }

// slackPerThread is how many slots there may be for each of the first slackThreads
// threads beyond the most blocks that were ever live: threads take over fewer slots
// of each other then, and wait less.
const (
	slackPerThread = 256
	slackThreads   = 64
)

// slots are all places for blocks.
type slots struct {
	slots []slot
	free  list // of all threads
}

// own and all choose the links of a list.
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
