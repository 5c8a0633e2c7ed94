package replay_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"rtrace-bpf/internal/replay"
)

// machine runs a program's file as its documentation specifies, one word of any
// thread at a time, and tracks the contents of each slot.
type machine struct {
	t      testing.TB
	lanes  [][]uint64
	at     []int
	shown  []int // progress that other threads may see
	blocks []int // of each slot, 0 for none
	made   int
	calls  []call
}

var machineFunctions = []string{"end", "wait", "free", "malloc", "calloc", "realloc", "memalign", "posix_memalign", "aligned_alloc"}

func load(t testing.TB, p *replay.Program) *machine {
	t.Helper()
	words := file(t, p)
	if string(binary.LittleEndian.AppendUint64(nil, words[0])) != "rtreplay" || words[1] != 1 {
		t.Fatalf("the file begins with %#x", words[:2])
	}
	m := &machine{t: t, blocks: make([]int, words[3])}
	lengths := words[4 : 4+words[2]]
	words = words[4+words[2]:]
	for _, n := range lengths {
		m.lanes = append(m.lanes, words[:n])
		words = words[n:]
	}
	if len(words) != 0 {
		t.Fatalf("%d words are left", len(words))
	}
	m.at, m.shown = make([]int, len(m.lanes)), make([]int, len(m.lanes))
	return m
}

// step runs one word of a thread. It returns false if the thread must wait.
func (m *machine) step(lane int) bool {
	m.t.Helper()
	words := m.lanes[lane]
	if m.at[lane] == len(words) {
		return false
	}
	w := words[m.at[lane]]
	number, value := w>>5&(1<<27-1), w>>32
	c := call{thread: lane, function: machineFunctions[w&15]}
	next := m.at[lane] + 1
	switch c.function {
	case "end":
		if next != len(words) {
			m.t.Fatalf("thread %d ends at word %d of %d", lane, next-1, len(words))
		}
		m.at[lane] = next
		return true
	case "wait":
		if m.shown[number] < int(value) {
			return false
		}
		m.at[lane] = next
		return true
	}
	c.size = value
	if value == 1<<32-1 {
		c.size = words[next]
		next++
	}
	slot := &m.blocks[number]
	switch c.function {
	case "memalign", "posix_memalign", "aligned_alloc":
		c.align = words[next]
		next++
		fallthrough
	case "malloc", "calloc":
		if *slot != 0 {
			m.t.Fatalf("thread %d word %d: %s into slot %d, which holds block %d", lane, m.at[lane], c.function, number, *slot)
		}
	case "free":
		if *slot == 0 {
			m.t.Fatalf("thread %d word %d: free of slot %d, which is empty", lane, m.at[lane], number)
		}
	}
	if c.old = *slot; c.function != "free" {
		m.made++
		c.new = m.made
	}
	*slot = c.new
	m.calls = append(m.calls, c)
	m.at[lane] = next
	if w>>4&1 != 0 {
		m.shown[lane] = next
	}
	return true
}

// run runs all words, with threads in random turns. A thread may run for a long
// time, as it does when others get no processor.
func (m *machine) run(r *rand.Rand) {
	m.t.Helper()
	for left := true; left; {
		left = false
		for _, lane := range r.Perm(len(m.lanes)) {
			for n := r.IntN(1 << r.IntN(12)); n >= 0 && m.step(lane); n-- {
				left = true
			}
		}
	}
	for lane := range m.lanes {
		if m.at[lane] != len(m.lanes[lane]) {
			m.t.Fatalf("thread %d waits for ever at word %d of %d", lane, m.at[lane], len(m.lanes[lane]))
		}
	}
}

// compare checks that calls equal those of want: in order per thread, with the
// same arguments and the same blocks. Numbers of blocks may differ.
func compare(t testing.TB, got, want []call) {
	t.Helper()
	threads := 0
	for _, c := range slices.Concat(got, want) {
		threads = max(threads, c.thread+1)
	}
	names := map[int]int{0: 0} // numbers in got of want's blocks
	pairs := make([][2][]call, threads)
	for _, c := range got {
		pairs[c.thread][0] = append(pairs[c.thread][0], c)
	}
	for _, c := range want {
		pairs[c.thread][1] = append(pairs[c.thread][1], c)
	}
	for thread, p := range pairs {
		if len(p[0]) != len(p[1]) {
			t.Fatalf("thread %d makes %d calls, want %d", thread, len(p[0]), len(p[1]))
		}
		for i := range p[1] {
			if p[1][i].new != 0 {
				names[p[1][i].new] = p[0][i].new
			}
		}
	}
	for thread, p := range pairs {
		for i, w := range p[1] {
			w.old, w.new = names[w.old], names[w.new]
			if w != p[0][i] {
				t.Fatalf("thread %d call %d is %+v, want %+v", thread, i, p[0][i], w)
			}
		}
	}
}
