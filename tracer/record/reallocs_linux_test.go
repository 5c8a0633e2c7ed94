package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/tracer/order"
)

// decide gives events to a moves and returns what it decided, one word for each event.
func decide(events []order.Event) string {
	m := newMoves()
	var out []string
	collect := func(all []order.Event) {
		for _, e := range all {
			name := map[uint8]string{
				order.KindAlloc: "alloc", order.KindFree: "free", order.KindMove: "move", kindFreeEarly: "early",
				kindAllocAgain: "again", order.KindSide: "side", order.KindGrowth: "growth",
			}[e.Kind]
			if name == "" {
				name = fmt.Sprintf("kind%d", e.Kind)
			}
			word := fmt.Sprintf("%s:%x@%d", name, e.Addr, e.Time)
			if e.Kind == order.KindMove {
				word = fmt.Sprintf("%s:%x>%x@%d", name, e.Old, e.Addr, e.Time)
			}
			out = append(out, word)
		}
	}
	for i := range events {
		if e := &events[i]; m.pass(e) {
			collect([]order.Event{*e})
		} else {
			collect(m.add(e))
		}
	}
	collect(m.flush())
	return strings.Join(out, " ")
}

func TestMoves(t *testing.T) {
	alloc := func(at uint64, tid uint32, addr uint64) order.Event {
		return order.Event{Kind: order.KindAlloc, Time: at, TID: tid, Addr: addr}
	}
	free := func(at uint64, tid uint32, addr uint64) order.Event {
		return order.Event{Kind: order.KindFree, Time: at, TID: tid, Addr: addr}
	}
	enter := func(at uint64, tid uint32, old uint64) order.Event {
		return order.Event{Kind: order.KindMoveEnter, Time: at, TID: tid, Addr: old}
	}
	move := func(at uint64, tid uint32, old, addr uint64) order.Event {
		return order.Event{Kind: order.KindMove, Time: at, TID: tid, Old: old, Addr: addr}
	}
	undone := func(at uint64, tid uint32, old uint64) order.Event {
		return order.Event{Kind: order.KindMoveUndone, Time: at, TID: tid, Addr: old}
	}
	growth := func(at uint64, tid uint32, addr uint64) order.Event {
		return order.Event{Kind: order.KindGrowth, Time: at, TID: tid, Addr: addr}
	}
	exit := func(at uint64, tid uint32) order.Event {
		return order.Event{Kind: order.KindSide, Function: uint16(order.SideExit), Time: at, TID: tid}
	}
	tests := map[string]struct {
		events []order.Event
		want   string
	}{
		"nothing open": {[]order.Event{alloc(1, 1, 0xa), free(2, 1, 0xa)}, "alloc:a@1 free:a@2"},
		"plain move":   {[]order.Event{enter(1, 1, 0xa), move(2, 1, 0xa, 0xb)}, "move:a>b@2"},
		"others wait":  {[]order.Event{enter(1, 1, 0xa), alloc(2, 2, 0xc), move(3, 1, 0xa, 0xb)}, "alloc:c@2 move:a>b@3"},
		"growth stays before the blocks in it": {
			[]order.Event{enter(1, 1, 0xa), growth(2, 1, 0xb), growth(3, 2, 0xc), alloc(4, 2, 0xc), move(5, 1, 0xa, 0xb)},
			"growth:b@2 growth:c@3 alloc:c@4 move:a>b@5",
		},
		"old block taken": {
			[]order.Event{enter(1, 1, 0xa), alloc(2, 2, 0xa), move(3, 1, 0xa, 0xb)},
			"free:a@1 alloc:a@2 alloc:b@3",
		},
		"old block taken by a move": {
			[]order.Event{enter(1, 1, 0xa), enter(2, 2, 0xc), move(3, 2, 0xc, 0xa), move(4, 1, 0xa, 0xb)},
			"free:a@1 move:c>a@3 alloc:b@4",
		},
		"taken and freed again": {
			[]order.Event{enter(1, 1, 0xa), alloc(2, 2, 0xa), free(3, 2, 0xa), move(4, 1, 0xa, 0xa)},
			"free:a@1 alloc:a@2 free:a@3 alloc:a@4",
		},
		"failed realloc leaves nothing": {[]order.Event{enter(1, 1, 0xa), undone(2, 1, 0xa), free(3, 1, 0xa)}, "free:a@3"},
		"realloc to nothing is a free":  {[]order.Event{enter(1, 1, 0xa), free(2, 1, 0xa)}, "free:a@2"},
		"realloc to nothing, block taken": {
			[]order.Event{enter(1, 1, 0xa), alloc(2, 2, 0xa), free(3, 1, 0xa)},
			"free:a@1 alloc:a@2",
		},
		"return without an entry": {[]order.Event{move(1, 1, 0xa, 0xb)}, "move:a>b@1"},
		"thread ends inside":      {[]order.Event{enter(1, 1, 0xa), exit(2, 1), alloc(3, 2, 0xc)}, "side:0@2 alloc:c@3"},
		"never returns":           {[]order.Event{enter(1, 1, 0xa), alloc(2, 2, 0xc)}, "alloc:c@2"},
		"left by longjmp, then again": {
			[]order.Event{enter(1, 1, 0xa), enter(2, 1, 0xd), move(3, 1, 0xd, 0xe)},
			"move:d>e@3",
		},
		"too long counts as freed": {
			[]order.Event{enter(1, 1, 0xa), alloc(2, 2, 0xc), alloc(2+holdTime, 2, 0xd), move(3+holdTime, 1, 0xa, 0xb)},
			fmt.Sprintf("early:a@1 alloc:c@2 alloc:d@%d alloc:b@%d", 2+holdTime, 3+holdTime),
		},
		"too long and failed": {
			[]order.Event{enter(1, 1, 0xa), alloc(2+holdTime, 2, 0xc), undone(3+holdTime, 1, 0xa)},
			fmt.Sprintf("early:a@1 alloc:c@%d again:a@%d", 2+holdTime, 3+holdTime),
		},
		"two open, inner returns last": {
			[]order.Event{enter(1, 1, 0xa), enter(2, 2, 0xb), move(3, 1, 0xa, 0xc), alloc(4, 3, 0xe), move(5, 2, 0xb, 0xd)},
			"move:a>c@3 alloc:e@4 move:b>d@5",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := decide(slices.Clone(test.events)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestMovesHoldsNoMoreThanItsLimit(t *testing.T) {
	m := newMoves()
	m.add(&order.Event{Kind: order.KindMoveEnter, Time: 1, TID: 1, Addr: 0xa})
	released := 0
	for i := range uint64(3 * holdEvents) {
		released += len(m.add(&order.Event{Kind: order.KindAlloc, Time: 2, TID: 2, Addr: 0x1000 + i}))
	}
	if held := len(m.held) - m.next; held > holdEvents {
		t.Errorf("%d events held, limit %d", held, holdEvents)
	}
	if released < 2*holdEvents {
		t.Errorf("only %d events released", released)
	}
}
