package tracer

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
)

// followed is a follower of a process that waits, and what it registered.
type followed struct {
	*follower
	world  *world
	child  *testutil.Child
	epochs []uint64
	refuse error // what registering is answered with
}

func follows(t *testing.T) *followed {
	t.Helper()
	f := &followed{world: newWorld(t, nil)}
	f.child = testutil.Spawn(t, testutil.Build(t, "loop"), "1", "1")
	f.child.Ready()
	f.follower = newFollower(f.world.of(f.child.PID, 0), func(epoch uint64) error {
		if f.refuse != nil {
			return f.refuse
		}
		f.epochs = append(f.epochs, epoch)
		return nil
	})
	return f
}

// sees looks, and fails the test unless there have been so many epochs then. It
// returns what the stream is told.
func (f *followed) sees(epochs int) side {
	f.world.t.Helper()
	if err := f.look(); err != nil {
		f.world.t.Fatal(err)
	}
	if len(f.epochs) != epochs {
		f.world.t.Errorf("%d epochs, want %d", len(f.epochs), epochs)
	}
	x := <-f.ready
	if x.kind != sideTables || x.number != f.heard || x.pid != uint32(f.child.PID) {
		f.world.t.Errorf("the stream is told %+v", x)
	}
	return x
}

// Each change has an epoch of its own. The stream is told of each look: without
// a change it ends doubts, too.
func TestFollowerLooks(t *testing.T) {
	f := follows(t)
	all := f.world.mapped(f.space)
	first := f.sees(1)
	if !slices.EqualFunc(first.snapshot, all, mapping.same) {
		t.Errorf("the stream is told of %+v, mapped are %+v", first.snapshot, all)
	}
	f.sees(1)
	made := all[0]
	made.inode = 0 // no file: it cannot be another one
	f.told(&side{kind: sideMap, mapping: made, number: 3})
	f.sees(1)
	f.told(&side{kind: sideMap, mapping: all[0], number: 4})
	f.sees(2)
	f.sees(2)
	if f.epochs[0] == f.epochs[1] || f.epochs[0]>>63 == 0 || f.epochs[1]>>63 == 0 {
		t.Errorf("epochs %#x", f.epochs)
	}
}

// The collector, which asks and listens, never has to wait for the follower.
func TestFollowerHoldsNobodyUp(t *testing.T) {
	f := follows(t)
	for range 3 {
		f.changed()
		f.told(&side{kind: sideMap, mapping: oneMapping, number: 1})
		if err := f.look(); err != nil {
			t.Fatal(err)
		}
	}
	last := clock()
	if x := <-f.ready; x.seen > last || x.snapshot == nil {
		t.Errorf("told %+v", x)
	}
	select {
	case x := <-f.ready:
		t.Errorf("an older word is left: %+v", x)
	default:
	}
}

// Asked for a look while it runs it takes one, and ends when it is told to.
func TestFollowerRuns(t *testing.T) {
	f := follows(t)
	f.start()
	for range 3 {
		f.changed()
		<-f.ready
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if len(f.epochs) != 1 {
		t.Errorf("%d epochs", len(f.epochs))
	}
}

// Without the process there is nothing to follow, and nobody is told of tables.
func TestFollowerOfNoProcess(t *testing.T) {
	f := follows(t)
	f.child.Go()
	f.child.Succeed()
	if err := f.look(); !errors.Is(err, ErrNoProcess) {
		t.Errorf("look: %v", err)
	}
	if len(f.ready) > 0 || len(f.epochs) > 0 {
		t.Error("somebody was told")
	}
}

// What the programs do not know of is not said to be in use.
func TestFollowerThatCannotRegister(t *testing.T) {
	f := follows(t)
	f.refuse = errors.New("no room")
	if err := f.look(); !errors.Is(err, f.refuse) {
		t.Errorf("look: %v", err)
	}
	if len(f.ready) > 0 {
		t.Error("the stream was told")
	}
}

// Each of the two who write to a target keeps what the other wrote.
func TestRegistry(t *testing.T) {
	testutil.NeedBPF(t)
	spec, err := loadProbe()
	if err != nil {
		t.Fatal(err)
	}
	renewed := 0
	r := registry{pid: 4711, targets: newMap(t, spec.Maps["targets"]), renew: func() error { renewed++; return nil }}
	read := func() (got probeProcess) {
		if err := r.targets.Lookup(uint32(4711), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	made := func(start, end uint64) (p probeProcess) {
		p.Target = probeTarget{Epoch: 44}
		p.Texts[1].Start, p.Texts[1].End = start, end
		return p
	}
	if err := r.relocate(1, extent{start: 1, end: 2}); err != nil {
		t.Fatal(err)
	}
	if err := r.remap(44); err != nil {
		t.Fatal(err)
	}
	if got, want := read(), made(1, 2); got != want || renewed != 2 {
		t.Errorf("%+v after %d renewals, want %+v", got, renewed, want)
	}
	if err := r.relocate(1, extent{start: 5, end: 6}); err != nil {
		t.Fatal(err)
	}
	if got, want := read(), made(5, 6); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// The programs have found the code elsewhere meanwhile.
	moved := made(7, 8)
	if err := r.targets.Put(uint32(4711), moved); err != nil {
		t.Fatal(err)
	}
	if err := r.remap(44); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != moved {
		t.Errorf("%+v, want %+v", got, moved)
	}
	r.renew = func() error { return errors.New("asleep") }
	if err := r.remap(45); err == nil || !strings.Contains(err.Error(), "process 4711: asleep") {
		t.Errorf("remap: %v", err)
	}
}

// oneMapping is a mapping of no file that there is.
var oneMapping = mapping{start: 0x1000, end: 0x3000, inode: 1, path: "/old"}
