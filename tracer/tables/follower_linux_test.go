package tables

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/host"
	"rtrace-bpf/tracer/object"
	"rtrace-bpf/tracer/order"
	"rtrace-bpf/tracer/process"
)

// followed is the follower of a waiting process, with the epochs that it registered.
type followed struct {
	*Follower
	world  *world
	child  *testutil.Child
	epochs []uint64
	refuse error // error that registering returns
}

func follows(t *testing.T) *followed {
	t.Helper()
	f := &followed{world: newWorld(t, nil)}
	f.child = testutil.Spawn(t, testutil.Build(t, "loop"), "1", "1")
	f.child.Ready()
	f.Follower = NewFollower(f.world.of(f.child.PID, 0), func(epoch uint64) error {
		if f.refuse != nil {
			return f.refuse
		}
		f.epochs = append(f.epochs, epoch)
		return nil
	})
	return f
}

// sees looks, and fails the test unless that many epochs were registered by then. It
// returns the side for the stream.
func (f *followed) sees(epochs int) order.Side {
	f.world.t.Helper()
	if err := f.Look(); err != nil {
		f.world.t.Fatal(err)
	}
	if len(f.epochs) != epochs {
		f.world.t.Errorf("%d epochs, want %d", len(f.epochs), epochs)
	}
	x := <-f.Ready
	if x.Kind != order.SideTables || x.Number != f.heard || x.PID != uint32(f.child.PID) {
		f.world.t.Errorf("the stream receives %+v", x)
	}
	return x
}

// Each change has an epoch of its own. Each look sends a side to the stream: even without
// a change it ends doubts about tables.
func TestFollowerLooks(t *testing.T) {
	f := follows(t)
	all := f.world.mapped(f.Space)
	first := f.sees(1)
	if !slices.EqualFunc(first.Snapshot, all, process.Mapping.Same) {
		t.Errorf("the stream receives %+v, want %+v", first.Snapshot, all)
	}
	f.sees(1)
	made := all[0]
	made.Inode = 0 // no file: it cannot be another one
	f.Mapped(&order.Side{Kind: order.SideMap, Mapping: made, Number: 3})
	f.sees(1)
	f.Mapped(&order.Side{Kind: order.SideMap, Mapping: all[0], Number: 4})
	f.sees(2)
	f.sees(2)
	if f.epochs[0] == f.epochs[1] || f.epochs[0]>>63 == 0 || f.epochs[1]>>63 == 0 {
		t.Errorf("epochs %#x", f.epochs)
	}
}

// The collector, which requests looks and receives their results, never has to wait for
// the follower.
func TestFollowerHoldsNobodyUp(t *testing.T) {
	f := follows(t)
	for range 3 {
		f.Changed()
		f.Mapped(&order.Side{Kind: order.SideMap, Mapping: oneMapping, Number: 1})
		if err := f.Look(); err != nil {
			t.Fatal(err)
		}
	}
	last := order.Clock()
	if x := <-f.Ready; x.Seen > last || x.Snapshot == nil {
		t.Errorf("got %+v", x)
	}
	select {
	case x := <-f.Ready:
		t.Errorf("an older side is left: %+v", x)
	default:
	}
}

// A running follower looks when it is asked to, and Close ends it.
func TestFollowerRuns(t *testing.T) {
	f := follows(t)
	f.Start()
	for range 3 {
		f.Changed()
		<-f.Ready
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if len(f.epochs) != 1 {
		t.Errorf("%d epochs", len(f.epochs))
	}
}

// After the process has ended nothing is registered or sent to the stream.
func TestFollowerOfNoProcess(t *testing.T) {
	f := follows(t)
	f.child.Go()
	f.child.Succeed()
	if err := f.Look(); !errors.Is(err, host.ErrNoProcess) {
		t.Errorf("look: %v", err)
	}
	if len(f.Ready) > 0 || len(f.epochs) > 0 {
		t.Error("the stream or the programs received tables")
	}
}

// Tables that the programs could not be given are not reported as installed.
func TestFollowerThatCannotRegister(t *testing.T) {
	f := follows(t)
	f.refuse = errors.New("no room")
	if err := f.Look(); !errors.Is(err, f.refuse) {
		t.Errorf("look: %v", err)
	}
	if len(f.Ready) > 0 {
		t.Error("the stream received a side")
	}
}

// Relocate and Remap each keep what the other wrote, and what the programs wrote.
func TestRegistry(t *testing.T) {
	testutil.NeedBPF(t)
	spec, err := object.LoadProbe()
	if err != nil {
		t.Fatal(err)
	}
	renewed := 0
	r := Registry{PID: 4711, Targets: newMap(t, spec.Maps["targets"]), Renew: func() error { renewed++; return nil }}
	read := func() (got object.ProbeProcess) {
		if err := r.Targets.Lookup(uint32(4711), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	made := func(start, end uint64) (p object.ProbeProcess) {
		p.Target = object.ProbeTarget{Epoch: 44}
		p.Texts[1].Start, p.Texts[1].End = start, end
		return p
	}
	if err := r.Relocate(1, process.Extent{Start: 1, End: 2}); err != nil {
		t.Fatal(err)
	}
	if err := r.Remap(44); err != nil {
		t.Fatal(err)
	}
	if got, want := read(), made(1, 2); got != want || renewed != 2 {
		t.Errorf("%+v after %d renewals, want %+v", got, renewed, want)
	}
	if err := r.Relocate(1, process.Extent{Start: 5, End: 6}); err != nil {
		t.Fatal(err)
	}
	if got, want := read(), made(5, 6); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	// In the meantime the programs found the code elsewhere.
	moved := made(7, 8)
	if err := r.Targets.Put(uint32(4711), moved); err != nil {
		t.Fatal(err)
	}
	if err := r.Remap(44); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != moved {
		t.Errorf("%+v, want %+v", got, moved)
	}
	r.Renew = func() error { return errors.New("asleep") }
	if err := r.Remap(45); err == nil || !strings.Contains(err.Error(), "process 4711: asleep") {
		t.Errorf("remap: %v", err)
	}
}

// oneMapping is a mapping of a file that does not exist.
var oneMapping = process.Mapping{Start: 0x1000, End: 0x3000, Inode: 1, Path: "/old"}
