package swap

import (
	"encoding/binary"
	"math"
	"net/netip"
	"strconv"
	"strings"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// Bounds of the arguments of a call that are written.
const (
	maxItems = 16
	maxText  = 4096 // bytes
)

// descriptor is a file descriptor of a process.
type descriptor struct {
	pid int32
	fd  uint64
}

// maxSockets bounds how many sockets are remembered.
const maxSockets = 1 << 16

// objectCall is a call of another resource than memory, and how it is written.
type objectCall struct {
	*trace.Record
	object *wire.Object
	api    *wire.API
	way    wire.Way
}

// ends reports whether the call frees the object.
func (x *objectCall) ends() bool { return x.Call.Op == trace.OpFree }

// object writes a call of another resource than memory. Where the document has two
// messages for a call, the first one has the time at which the call began, if the Call
// has it: the size of a lock is how long the call waited for it.
func (m *Writer) object(r *trace.Record, t *wire.Object) {
	api, added := m.apis.other(t, &r.Call)
	if added {
		m.name(api, r.Time)
	}
	x := &objectCall{Record: r, object: t, api: api}
	x.way = t.Way(x.api.Name, x.ends())
	if t.Resource == wire.Descriptor {
		m.socket(x)
	}
	wall := m.clock.wall(r.Time)
	if x.way.Waits {
		began := wall
		if t.Message == wire.ProbeSync {
			began = max(wall-int64(min(r.Call.Size, uint64(wall))), min(wall, wire.MinSeconds*1e9))
		}
		m.objectMessage(x, began, true)
	}
	number := m.seq
	m.objectMessage(x, wall, false)
	if frames := r.Call.Stack.Frames; len(frames) > 1 && !m.opts.NoStacks {
		m.frames(r.Time, number, frames)
	}
}

// socket remembers which descriptors are sockets. Their close is a PROBE_NETWORK.
func (m *Writer) socket(x *objectCall) {
	d := descriptor{x.PID, x.Call.ID}
	switch network := x.way.Message == wire.ProbeNetwork; {
	case x.ends() && network: // the descriptor continues as another one
	case x.ends():
		if m.sockets[d] && x.api.Name == "close" {
			x.way = wire.Way{Message: wire.ProbeNetwork, Type: wire.NetworkClose}
		}
		delete(m.sockets, d)
	case !network:
		delete(m.sockets, d)
	case len(m.sockets) < maxSockets:
		m.sockets[d] = true
	}
}

// objectMessage writes a message. A call that only begins has no result and no
// descriptor of a new file yet.
func (m *Writer) objectMessage(x *objectCall, wall int64, begins bool) {
	c, kind := &x.Call, x.way.Type
	if begins {
		kind = x.way.Start
	}
	m.beginAt(x.way.Message, wall)
	m.u32(x.api.ID)
	m.u32(uint32(x.PID))
	m.u32(uint32(x.TID))
	m.items(c, x.object.Params(x.api.Name, x.ends()))
	letter, itself := x.object.Result(x.api.Name)
	result := Item{Letter: letter}
	if x.ends() {
		result.Letter = 'd'
	} else if itself && !begins {
		result.Number = c.ID
	}
	m.out.Buf = result.appendTo(m.out.Buf)
	m.u64(0) // errno
	m.u32(callType)
	caller := uint64(UnknownCaller)
	if len(c.Stack.Frames) > 0 {
		caller = c.Stack.Frames[0]
	}
	m.u64(caller)
	m.u64(0) // reserved
	fd := c.ID
	switch {
	case x.object.Resource == wire.Stream:
		fd = math.MaxUint64 // the descriptor is not known yet
	case begins:
		fd = numberOf(c, "sockfd")
	}
	switch x.way.Message {
	case wire.ProbeFile:
		m.u64(0) // bytes moved
		m.u64(fd)
		m.u32(kind)
		m.u64(0) // size of the file
		m.text(argument(c, "path"))
	case wire.ProbeNetwork:
		ip, port := internet(c)
		m.u64(0) // object
		m.u64(fd)
		m.u32(kind)
		m.out.Buf = append(m.out.Buf, ip[:]...)
		m.u32(port)
		m.u64(0) // bytes moved
	case wire.ProbeThread:
		m.u64(c.ID)
		m.u64(0) // of Tizen
		m.u32(0) // pthread
		m.u32(kind)
		m.text("") // class
	case wire.ProbeSync:
		m.u64(c.ID)
		m.u32(x.object.Sync)
		m.u32(kind)
	}
	m.end()
}

// items writes the arguments: the parameters, then the other arguments of the Call as
// texts NAME=VALUE.
func (m *Writer) items(c *trace.Call, params []wire.Param) {
	at, n := len(m.out.Buf), uint32(0)
	m.u32(0)
	var taken [maxItems]bool
	for i := range params {
		p := &params[i]
		item := Item{Letter: 'n'}
		switch k := indexOf(c, p.Name); {
		case p.ID:
			item = Item{Letter: p.Letter, Number: c.ID}
		case p.Name != "" && k < maxItems && k >= 0:
			if given, ok := itemOf(p, c.Args[k].Value); ok {
				item, taken[k] = given, true
			}
		}
		m.item(&item)
		n++
	}
	for i := range c.Args {
		if i >= maxItems {
			m.long++
			break
		}
		if !taken[i] {
			m.item(&Item{Letter: 's', Text: c.Args[i].Name + "=" + c.Args[i].Value})
			n++
		}
	}
	binary.LittleEndian.PutUint32(m.out.Buf[at:], n)
}

// item writes an argument. A text that is too long is cut.
func (m *Writer) item(i *Item) {
	if i.Letter != 's' {
		m.out.Buf = i.appendTo(m.out.Buf)
		return
	}
	text := i.Text
	if len(text) > maxText {
		text = text[:maxText]
		m.long++
	}
	m.out.Buf = append(m.out.Buf, 's')
	m.text(text)
}

// itemOf returns an argument as an item, if the item is exact.
func itemOf(p *wire.Param, value string) (item Item, ok bool) {
	if p.Letter == 's' {
		return Item{Letter: 's', Text: value}, !strings.Contains(value, "\x00")
	}
	bits := 64
	if p.Letter == 'd' {
		bits = 32
	}
	if p.Hex {
		digits, _ := strings.CutPrefix(value, "0x")
		n, err := strconv.ParseUint(digits, 16, bits)
		return Item{Letter: p.Letter, Number: n}, err == nil && "0x"+strconv.FormatUint(n, 16) == value
	}
	n, err := strconv.ParseInt(value, 10, bits)
	return Item{Letter: p.Letter, Number: uint64(n)}, err == nil && strconv.FormatInt(n, 10) == value
}

// indexOf returns the index of the argument with the given name, or -1.
func indexOf(c *trace.Call, name string) int {
	for i := range c.Args {
		if c.Args[i].Name == name {
			return i
		}
	}
	return -1
}

// argument returns the value of the argument with the given name, or "".
func argument(c *trace.Call, name string) string {
	if i := indexOf(c, name); i >= 0 {
		return c.Args[i].Value
	}
	return ""
}

// numberOf returns the number in the argument with the given name, or 0.
func numberOf(c *trace.Call, name string) uint64 {
	n, err := strconv.ParseInt(argument(c, name), 10, 32)
	if err != nil {
		return 0
	}
	return uint64(n)
}

// internet returns the IPv4 address in the arguments of a call of a socket. Other
// addresses are 0.
func internet(c *trace.Call) (ip [4]byte, port uint32) {
	at, err := netip.ParseAddrPort(argument(c, "address:port"))
	if err != nil || !at.Addr().Is4() {
		return ip, 0
	}
	return at.Addr().As4(), uint32(at.Port())
}
