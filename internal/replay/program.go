package replay

import (
	"bufio"
	"container/heap"
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// Program is the calls of a replay.
type Program struct {
	Stats Stats

	threads []*thread
	lanes   [][]*thread
	words   []uint64 // number of words of each lane, including END
}

// Program returns the program of all records written so far. The Builder cannot
// be used afterwards.
func (b *Builder) Program() (*Program, error) {
	if b.err != nil {
		return nil, b.err
	}
	if b.stats.Calls == 0 {
		return nil, ErrNoCalls
	}
	p := &Program{Stats: b.stats, threads: b.threads}
	if err := p.layOut(); err != nil {
		return nil, err
	}
	s := &p.Stats
	s.Threads, s.Lanes, s.Slots = len(b.threads), len(p.lanes), len(b.slots.slots)
	s.LeftBlocks, s.LeftBytes = uint64(b.blocks.Len()), b.blocks.Bytes()
	const slotSize, laneSize = 16, 384
	s.ProgramSize = uint64(s.Slots)*slotSize + uint64(s.Lanes)*laneSize
	for _, n := range p.words {
		s.ProgramSize += n * 8
	}
	*b = Builder{}
	return p, nil
}

// layOut assigns the traced threads to the threads of the replay (lanes). The
// first lane, the main thread, gets the main thread of the trace or, if that is
// unknown or makes no calls, the thread that made the first call. Each other
// lane gets a traced thread and, after the last call of that thread, another
// one.
func (p *Program) layOut() error {
	first := p.threads[0]
	for _, t := range p.threads {
		if t.main {
			first = t
			break
		}
	}
	p.lanes = [][]*thread{{first}}
	p.words = []uint64{first.words.n}
	var free ends
	for _, t := range p.threads { // in the order of their first calls
		if t == first {
			continue
		}
		if len(free) > 0 && free[0].last < t.first {
			t.lane = free[0].lane
			t.before = uint32(p.words[t.lane])
			p.lanes[t.lane] = append(p.lanes[t.lane], t)
			free[0].last = t.last
			heap.Fix(&free, 0)
		} else {
			if len(p.lanes) == maxThreads {
				return fmt.Errorf("more than %d threads make calls at the same time", maxThreads)
			}
			t.lane = uint32(len(p.lanes))
			p.lanes = append(p.lanes, []*thread{t})
			p.words = append(p.words, 0)
			heap.Push(&free, end{t.last, t.lane})
		}
		p.words[t.lane] += t.words.n
	}
	for i := range p.words {
		if p.words[i]++; p.words[i] > math.MaxUint32 {
			return fmt.Errorf("a thread of the replay has more than %d calls", uint32(math.MaxUint32))
		}
	}
	return nil
}

// end is the number of the call after which a lane is free for another traced
// thread.
type end struct {
	last uint64
	lane uint32
}

// ends is a heap; the first lane is free first.
type ends []end

func (e ends) Len() int           { return len(e) }
func (e ends) Less(i, j int) bool { return e[i].last < e[j].last }
func (e ends) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *ends) Push(x any)        { *e = append(*e, x.(end)) }
func (e *ends) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// Write writes the program's file.
func (p *Program) Write(to io.Writer) error {
	w := &wordWriter{bufio.NewWriterSize(to, 1<<16)}
	w.words(fileMagic, fileVersion, uint64(len(p.lanes)), uint64(p.Stats.Slots))
	w.words(p.words...)
	for _, lane := range p.lanes {
		for _, t := range lane {
			p.writeThread(w, t)
		}
		w.words(word(codeEnd, 0, 0))
	}
	return w.Flush() // returns the first error
}

// writeThread writes the words of a thread. It converts the threads and
// positions that the thread waits for to lanes and positions in these.
func (p *Program) writeThread(w *wordWriter, t *thread) {
	skip := 0
	for _, chunk := range t.words.chunks {
		for _, x := range chunk {
			switch {
			case skip > 0:
				skip--
			case codeOf(x) == codeWait:
				other := p.threads[numberOf(x)]
				x = word(codeWait, other.lane, x>>valueShift+uint64(other.before))
			default:
				skip = extras(x)
			}
			w.words(x)
		}
	}
}

type wordWriter struct{ *bufio.Writer }

func (w *wordWriter) words(words ...uint64) {
	for _, x := range words {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], x)
		_, _ = w.Write(b[:]) // Flush returns the error
	}
}
