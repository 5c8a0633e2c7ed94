package modules

import (
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"rtrace-bpf/trace"
)

// The resources of module shmposix, with sp-rtrace's names.
const (
	objectMapping = "pshmmap"
	fileMapping   = "fshmmap"
	otherMapping  = "shmmap"
	object        = "pshmobj"
	objectFD      = "pshmfd"

	objectKind = "shared memory object" // kind of a descriptor
)

// shmposix is the module for shared memory objects, and for mappings by what they map.
var shmposix = Module{
	Name: "shmposix", Desc: "POSIX shared memory, and mappings by what is mapped", ownOnly: true,
	Resources: []trace.Resource{
		{Type: objectMapping, Desc: "posix shared memory mapping"},
		{Type: fileMapping, Desc: "file mapping"},
		{Type: otherMapping, Desc: "generic memory mapping"},
		{Type: object, Desc: "posix shared memory object"},
		{Type: objectFD, Desc: "opened posix shared memory object"},
	},
	rows: []row{
		{symbols: []string{"shm_open"}, args: "sdd", result: 'd', ok: notMinusOne, does: []step{opensObject}},
		{symbols: []string{"shm_unlink"}, args: "s", result: 'd', ok: zero, does: []step{unlinksObject}},
		{symbols: []string{"open", "open64"}, args: "sd", result: 'd', ok: notMinusOne, does: []step{opensFile(0, 1)}},
		{symbols: []string{"openat", "openat64"}, args: "dsd", result: 'd', ok: notMinusOne, does: []step{opensFile(1, 2)}},
		{symbols: []string{"creat", "creat64"}, args: "sd", result: 'd', ok: notMinusOne, does: []step{opensFile(0, -1)}},
		{
			symbols: []string{"close"}, args: "d", result: 'd', ok: zero,
			frees: []freeing{{resource: objectFD, id: fdArg(0), only: func(c *call) bool { return c.fds.get(uint32(c.word(0))).kind == objectKind }}},
			does:  []step{closes(fdArg(0))},
		},
		{symbols: mmapSymbols, args: mmapArgs, result: 'p', ok: isMapped, does: []step{maps}},
		{symbols: []string{"munmap"}, args: "px", result: 'd', ok: zero, ends: unmaps, detail: []argument{long("length", 1)}, does: []step{unmapped}},
	},
}

// shared is the state of the module.
type shared struct {
	objects map[string]uint64 // ids
}

func sharedOf(c *call) *shared {
	return stateOf(c, func() *shared { return &shared{objects: map[string]uint64{}} })
}

// hash is the one-at-a-time function of Bob Jenkins, from which sp-rtrace derives IDs.
func hash(name string) uint32 {
	var h uint32
	for i := range len(name) {
		h += uint32(name[i])
		h += h << 10
		h ^= h >> 6
	}
	h += h << 3
	h ^= h >> 11
	return h + h<<15
}

// objectID returns the ID of a name, and whether it had one before. Names with the same hash have
// consecutive IDs.
func (s *shared) objectID(name string) (uint64, bool) {
	if id, ok := s.objects[name]; ok {
		return id, true
	}
	taken := map[uint64]bool{}
	for _, id := range s.objects {
		taken[id] = true
	}
	id := hash(name)
	for taken[uint64(id)] {
		id++
	}
	s.objects[name] = uint64(id)
	return uint64(id), false
}

func opensObject(c *call) {
	name, _ := c.text(0)
	args := []argument{text("name", 0), hex("oflag", 1), hex("mode", 2)}
	if id, there := sharedOf(c).objectID(name); c.word(1)&unix.O_CREAT != 0 && !there {
		c.alloc(object, id, 1, args...)
	}
	c.fds.known[uint32(c.result())] = descriptor{kind: objectKind, name: name, mode: uint32(c.word(1))}
	c.alloc(objectFD, fdResult(c), 1, args...)
}

func unlinksObject(c *call) {
	name, _ := c.text(0)
	id, _ := sharedOf(c).objectID(name)
	delete(sharedOf(c).objects, name)
	c.acts = append(c.acts, Act{Op: trace.OpFree, Function: c.function, Resource: c.number(c.module, object), ID: id, Args: c.describe([]argument{text("name", 0)})})
}

// opensFile records what a descriptor refers to. mode is the argument with the flags, or -1.
func opensFile(path, mode int) step {
	return func(c *call) {
		x := descriptor{kind: "file"}
		x.name, _ = c.text(path)
		if mode >= 0 {
			x.mode = uint32(c.word(mode))
		}
		c.fds.known[uint32(c.result())] = x
	}
}

// maps is the step for mmap.
func maps(c *call) {
	args := []argument{long("length", 1), hex("prot", 2), hex("flags", 3)}
	resource := otherMapping
	if fd := uint32(c.word(4)); fd != math.MaxUint32 && c.word(3)&unix.MAP_ANONYMOUS == 0 {
		args = append(args, decimal("fd", 4), long("offset", 5))
		x := c.fds.get(fd)
		switch x.kind {
		case objectKind:
			resource = objectMapping
		case "file":
			resource = fileMapping
		}
		if x.name != "" {
			args = append(args, fixed("name", x.name), fixed("mode", fmt.Sprintf("0x%x", x.mode)))
		}
	}
	addMapping(c, resource, c.result(), c.word(1), args...)
}
