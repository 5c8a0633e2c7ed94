package swap

import (
	"strconv"
	"strings"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// messages reads messages in order, with a look at the next one.
type messages struct {
	s      *Scanner
	parser Parser
	msg    Message
	fields Fields
	ahead  Message // the next message, if peek has read it
	after  Fields  // its fields

	started bool
	next    uint32     // next sequence number
	loss    trace.Lost // the loss that msg describes, with its gap; no reason if it describes none
}

// gap checks the sequence number of the message. It returns how many messages before it
// are missing without an explanation, and whether it is the first message.
func (m *messages) gap() (gap uint64, first bool) {
	due := m.next
	m.next = m.msg.Sequence + 1
	if !m.started {
		m.started = true
		m.explain(0, true)
		return 0, true
	}
	gap = uint64(m.msg.Sequence - due)
	if gap > wire.MaxGap {
		gap = 0 // the number went back
	}
	return gap - m.explain(gap, false), false
}

// explain checks whether the message is rtrace's own description of the gap before it,
// and returns how much of the gap it explains. The described loss may exceed the gap
// only where a gap cannot be longer.
func (m *messages) explain(gap uint64, first bool) (explained uint64) {
	m.loss = trace.Lost{}
	if m.msg.ID != wire.Error {
		return 0
	}
	text, ok := strings.CutPrefix(strings.TrimSuffix(string(m.msg.Data), "\x00"), wire.LostPrefix)
	number, reason, known := strings.Cut(text, ": ")
	n, err := strconv.ParseUint(number, 10, 64)
	if !ok || !known || reason == "" || strings.Contains(reason, "\x00") || err != nil || n > gap && !first && gap != wire.MaxGap {
		return 0
	}
	m.loss = trace.Lost{Count: n, Reason: oneLine(reason)}
	return min(n, gap)
}

// again parses the message again, because peek may have moved its bytes.
func (m *messages) again() {
	m.s.renew(&m.msg)
	_ = m.parser.Parse(&m.msg, &m.fields) // it parsed before
}

// lookAhead parses the next message if it has the given id and no message before it is
// missing.
func (m *messages) lookAhead(id uint32) bool {
	more, err := m.s.peek(&m.ahead)
	return err == nil && more && m.ahead.ID == id && m.ahead.Sequence == m.next && m.parser.Parse(&m.ahead, &m.after) == nil
}
