package nettrace

import (
	"encoding/binary"

	wire "rtrace-bpf/internal/wire/nettrace"
)

// tables holds what events refer to by number.
type tables struct {
	meta    metaTable
	stacks  stackTable
	labels  labelTable
	threads threadTable
}

// flush forgets what no event after a sequence point with these flags refers to.
func (t *tables) flush(flags uint32) {
	t.stacks.clear()
	t.labels.clear()
	if flags&wire.FlushThreads != 0 {
		t.threads.clear()
	}
	if flags&wire.FlushMetadata != 0 {
		t.meta.clear()
	}
}

// metaTable holds descriptions of events by id.
type metaTable struct {
	small []*wire.Metadata // ids are 1, 2, 3 … in real streams
	large map[uint32]*wire.Metadata
	count int
	bytes int
}

// smallIDs is the number of ids that are indices of small.
const smallIDs = 1 << 16

func (t *metaTable) find(id uint32) *wire.Metadata {
	if uint64(id) < uint64(len(t.small)) {
		return t.small[id]
	}
	return t.large[id]
}

// add adds m, whose description has size bytes.
func (t *metaTable) add(m *wire.Metadata, size int) error {
	t.count++
	t.bytes += size
	switch {
	case m.ID == 0:
		return malformed("description of events with id 0")
	case t.find(m.ID) != nil:
		return malformed("id %d describes two kinds of events", m.ID)
	case t.count > maxMetadata || t.bytes > maxMetaSize:
		return tooMuch("%d kinds of events, described in %d bytes", t.count, t.bytes)
	case m.ID >= smallIDs:
		if t.large == nil {
			t.large = make(map[uint32]*wire.Metadata)
		}
		t.large[m.ID] = m
		return nil
	}
	for int(m.ID) >= len(t.small) {
		t.small = append(t.small, nil)
	}
	t.small[m.ID] = m
	return nil
}

func (t *metaTable) clear() { *t = metaTable{} }

// stackTable holds stacks by id. The ids after a sequence point count up from its first
// one.
type stackTable struct {
	size   int // bytes of an address
	first  uint32
	list   [][]uint64 // stacks with the ids first, first+1, …
	others map[uint32][]uint64
	frames []uint64 // memory for the stacks to come
	bytes  int
}

func (t *stackTable) find(id uint32) ([]uint64, bool) {
	if i := uint64(id - t.first); i < uint64(len(t.list)) {
		return t.list[i], true
	}
	frames, ok := t.others[id]
	return frames, ok
}

// stackCost is about how much memory a stack uses besides its frames, in bytes.
const stackCost = 32

// add adds the stack with the addresses in b.
func (t *stackTable) add(id uint32, b []byte) error {
	if len(b)%t.size != 0 {
		return malformed("stack of %d bytes with addresses of %d", len(b), t.size)
	}
	n := len(b) / t.size
	if t.bytes += 8*n + stackCost; t.bytes > maxStacks {
		return tooMuch("stacks of %d bytes without a sequence point", t.bytes)
	}
	if n > cap(t.frames)-len(t.frames) {
		t.frames = make([]uint64, 0, max(n, min(2*cap(t.frames), 4096), 512))
	}
	start := len(t.frames)
	t.frames = t.frames[:start+n]
	frames := t.frames[start : start+n : start+n]
	if t.size == 8 {
		for i := range frames {
			frames[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	} else {
		for i := range frames {
			frames[i] = uint64(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
	if len(t.list) == 0 {
		t.first = id
	}
	switch i := uint64(id - t.first); {
	case i == uint64(len(t.list)):
		t.list = append(t.list, frames)
	case i < uint64(len(t.list)):
		t.list[i] = frames
	default:
		if t.others == nil {
			t.others = make(map[uint32][]uint64)
		}
		t.others[id] = frames
	}
	return nil
}

// clear forgets all stacks. Nothing may point to them any more.
func (t *stackTable) clear() {
	t.list, t.frames, t.bytes = t.list[:0], t.frames[:0], 0
	clear(t.others)
}

// labelTable holds lists of labels by index.
type labelTable struct {
	lists map[uint32]*Labels
	bytes int
}

// find returns a list of labels, or nil for index 0 and an unknown index.
func (t *labelTable) find(index uint32) *Labels {
	if index == 0 {
		return nil
	}
	return t.lists[index]
}

func (t *labelTable) add(index uint32, l *Labels, size int) error {
	if t.lists == nil {
		t.lists = make(map[uint32]*Labels)
	}
	t.lists[index] = l
	if t.bytes += size; len(t.lists) > maxLabels || t.bytes > maxLabelled {
		return tooMuch("%d lists of labels without a sequence point", len(t.lists))
	}
	return nil
}

func (t *labelTable) clear() {
	clear(t.lists)
	t.bytes = 0
}

// threadTable holds threads by id, in version 6 by index.
type threadTable struct {
	process uint64 // of version 4, and of threads without one
	byID    map[uint64]*Thread
	all     []*Thread // those that waiting events refer to, and others
	recent  [16]*Thread
	ids     [16]uint64 // ids in recent
}

// recentSlot returns the slot of a thread in threadTable.recent.
func recentSlot(id uint64) uint64 { return id * 0x9e3779b97f4a7c15 >> 60 }

// find returns a thread. In version 4, an unknown one is new.
func (t *threadTable) find(id uint64, v6 bool) (*Thread, error) {
	slot := recentSlot(id)
	if found := t.recent[slot]; found != nil && t.ids[slot] == id {
		return found, nil
	}
	found := t.byID[id]
	if found == nil {
		if v6 {
			return nil, malformed("reference to unknown thread index %d", id)
		}
		if len(t.byID) >= maxThreads {
			t.clear() // the numbers of events start again
		}
		found = &Thread{Process: t.process, ID: id, Known: true}
		t.put(id, found)
	}
	t.ids[slot], t.recent[slot] = id, found
	return found, nil
}

func (t *threadTable) put(id uint64, thread *Thread) {
	if t.byID == nil {
		t.byID = make(map[uint64]*Thread)
	}
	thread.slot = uint32(len(t.all))
	t.byID[id], t.all = thread, append(t.all, thread)
	t.recent[recentSlot(id)] = nil
}

// trim forgets threads that have ended. No event may wait.
func (t *threadTable) trim() {
	if len(t.all) < 2*len(t.byID)+1000 {
		return
	}
	t.all = t.all[:0]
	for _, thread := range t.byID {
		thread.slot = uint32(len(t.all))
		t.all = append(t.all, thread)
	}
	clear(t.all[len(t.all):cap(t.all)])
}

func (t *threadTable) remove(id uint64) {
	delete(t.byID, id)
	t.recent[recentSlot(id)] = nil
}

func (t *threadTable) clear() {
	clear(t.byID)
	clear(t.recent[:])
}

// count counts an event of the thread with the given number, and returns how many
// events are missing before it. In version 4 thread ids may be reused, so that numbers
// start again, and the number before the first event is unknown.
func (t *Thread) count(seq uint32, v6 bool) uint64 {
	return t.reach(seq-1, seq, v6)
}

// reach records that the last number should be before and is now, and returns how many
// events are missing.
func (t *Thread) reach(before, now uint32, v6 bool) (missing uint64) {
	if n := int32(before - t.seq); n > 0 && t.counted && (v6 || t.seq != 0) {
		missing = uint64(n)
	}
	t.seq, t.counted = now, true
	return missing
}
