package modules

import (
	"strconv"

	"golang.org/x/sys/unix"

	"rtrace-bpf/trace"
)

// The resources of module shmsysv, with sp-rtrace's names.
const (
	segment    = "segment"
	attachment = "address"
	control    = "control"
)

// shmsysv is the module for shared memory of System V.
var shmsysv = Module{
	Name: "shmsysv", Desc: "System V shared memory",
	Resources: []trace.Resource{
		{Type: segment, Desc: "shared memory segment", RefCount: true},
		{Type: attachment, Desc: "shared memory attachments"},
		{Type: control, Desc: "shared memory segment control operation"},
	},
	rows: []row{
		{symbols: []string{"shmget"}, args: "dxd", result: 'd', ok: notMinusOne, does: []step{makesSegment}},
		{symbols: []string{"shmat"}, args: "dpd", result: 'p', ok: isMapped, does: []step{attaches}},
		{symbols: []string{"shmdt"}, args: "p", result: 'd', ok: zero, frees: []freeing{{resource: attachment, id: arg(0)}}, does: []step{detaches}},
		{symbols: []string{"shmctl"}, args: "ddp", result: 'd', ok: zero, does: []step{removes}},
	},
}

// segments is the state of the module.
type segments struct {
	known    map[uint32]*sysvSegment
	attached map[uint64]uint32 // segments by address
}

type sysvSegment struct {
	size     uint64
	own      bool // the process has made it
	removed  bool // it ends with the last attachment
	attached int  // number of attachments by the process
}

func segmentsOf(c *call) *segments {
	return stateOf(c, func() *segments {
		return &segments{known: map[uint32]*sysvSegment{}, attached: map[uint64]uint32{}}
	})
}

func (s *segments) get(id uint32) *sysvSegment {
	if s.known[id] == nil {
		s.known[id] = &sysvSegment{}
	}
	return s.known[id]
}

func makesSegment(c *call) {
	x := segmentsOf(c).get(uint32(c.result()))
	x.size = c.word(1)
	if c.word(2)&unix.IPC_CREAT != 0 {
		x.own = true
		c.alloc(segment, fdResult(c), c.word(1))
	}
}

func attaches(c *call) {
	all, id := segmentsOf(c), uint32(c.word(0))
	x := all.get(id)
	x.attached++
	all.attached[c.result()] = id
	args := []argument{hex("shmid", 0)}
	if x.own {
		args = append(args, fixed("cpid", strconv.Itoa(c.pid)))
	}
	c.alloc(attachment, c.result(), x.size, args...)
}

func detaches(c *call) {
	all := segmentsOf(c)
	id, ok := all.attached[c.word(0)]
	if !ok {
		return
	}
	delete(all.attached, c.word(0))
	x := all.get(id)
	if x.attached--; x.attached <= 0 && x.removed {
		delete(all.known, id)
		c.free(segment, uint64(id))
	}
}

// removes is the step for shmctl with IPC_RMID: the segment ends when nothing is attached to it
// any more.
func removes(c *call) {
	if c.word(1)&^ipc64 != unix.IPC_RMID {
		return
	}
	id := uint32(c.word(0))
	c.acts = append(c.acts, Act{
		Op: trace.OpFree, Function: c.function, Resource: c.number(c.module, control), ID: uint64(id),
		Args: []trace.Arg{{Name: "cmd", Value: "IPC_RMID"}},
	})
	x := segmentsOf(c).get(id)
	if x.removed = true; x.attached <= 0 {
		delete(segmentsOf(c).known, id)
		c.free(segment, uint64(id))
	}
}

// ipc64 is a flag that C libraries may add to commands (IPC_64).
const ipc64 = 0x100
