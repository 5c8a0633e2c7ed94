package swapevents

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/linux/machine"
	"rtrace-bpf/trace"
)

// The messages that a Machine adds, as the protocol numbers them.
const (
	systemMessage = 0x0005
	statusMessage = 0x000e
)

// kept keeps the records that are written.
type kept struct{ records []*trace.Record }

func (k *kept) WriteRecord(r *trace.Record) error {
	k.records = append(k.records, r.Clone())
	return nil
}
func (k *kept) Flush() error { return nil }
func (k *kept) Close() error { return nil }

// kinds lists the kinds of the records with their times, and the numbers of messages.
func (k *kept) kinds() (all []string) {
	for _, r := range k.records {
		text := fmt.Sprintf("%v @%d", r.Kind, r.Time)
		if r.Kind == trace.KindOpaque {
			text = fmt.Sprintf("%#x @%d", r.Opaque.ID, r.Time)
		}
		all = append(all, text)
	}
	return all
}

// newMachine returns a Machine for the process of the test, and what it writes.
func newMachine(t *testing.T, o Options, live func() uint64) (*Machine, *kept) {
	t.Helper()
	m, err := NewMachine(os.Getpid(), o, live, t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Stop)
	to := new(kept)
	m.To(to)
	return m, to
}

func write(t *testing.T, m *Machine, r trace.Record) {
	t.Helper()
	if err := m.WriteRecord(&r); err != nil {
		t.Fatal(err)
	}
}

// The message about open files has a file of this process, with its descriptor and its size,
// in the layout of each dialect.
func TestOpenFiles(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(12345); err != nil {
		t.Fatal(err)
	}
	for name, dialect := range map[string]swap.Dialect{"document": swap.Document, "kernel": swap.Kernel} {
		t.Run(name, func(t *testing.T) {
			pid := uint32(os.Getpid())
			m, to := newMachine(t, Options{Dialect: dialect}, nil)
			if n := m.Processors(); n != 0 {
				t.Errorf("%d processors, without states of the machine", n)
			}
			write(t, m, trace.Record{Kind: trace.KindProcess, Time: 100, PID: int32(pid), Process: trace.Process{Name: "comm"}})
			write(t, m, trace.Record{Kind: trace.KindThread, Time: 100})
			write(t, m, trace.Record{Kind: trace.KindThread, Time: 101})
			want := []string{"process @100", "thread @100", "0xe @100", "thread @101"}
			if got := to.kinds(); !slices.Equal(got, want) {
				t.Fatalf("got %q, want %q", got, want)
			}
			command := "comm"
			if dialect == swap.Document {
				command = strings.Join(os.Args, " ")
			}
			if got := to.records[0].Process.Name; got != command {
				t.Errorf("command %q, want %q", got, command)
			}
			// The entry of the file: fd, only in the document a thread, size, path.
			entry := binary.LittleEndian.AppendUint32(nil, uint32(f.Fd()))
			if dialect == swap.Document {
				entry = binary.LittleEndian.AppendUint32(entry, pid)
			}
			entry = binary.LittleEndian.AppendUint64(entry, 12345)
			entry = append(append(entry, f.Name()...), 0)
			status := to.records[2].Opaque
			if status.ID != statusMessage || binary.LittleEndian.Uint32(status.Data) != pid || !bytes.Contains(status.Data[8:], entry) {
				t.Errorf("message %#x of %q has no entry %q", status.ID, status.Data, entry)
			}
		})
	}
}

// A state of the machine comes before the first later record of the tracer. It has the bytes
// of live blocks after the record before it.
func TestStatesInOrder(t *testing.T) {
	live := uint64(0)
	m, to := newMachine(t, Options{Period: time.Hour}, func() uint64 { return live })
	write(t, m, trace.Record{Kind: trace.KindProcess, Time: 100})
	live = 11
	write(t, m, trace.Record{Kind: trace.KindCall, Time: 200})
	reading := machine.Reading{Frequencies: make([]float32, 2), Loads: make([]float32, 2)}
	m.system(&reading, 250)
	m.system(&reading, 300)
	live = 22
	write(t, m, trace.Record{Kind: trace.KindCall, Time: 300})
	live = 33
	write(t, m, trace.Record{Kind: trace.KindCall, Time: 400})
	want := []string{"process @100", "0xe @100", "0x5 @100", "call @200", "0x5 @250", "call @300", "0x5 @300", "call @400"}
	if got := to.kinds(); !slices.Equal(got, want) {
		t.Fatalf("got %q, want %q", got, want)
	}
	if m.Processors() == 0 {
		t.Error("the states of the machine have no processors")
	}
	for i, test := range map[int]struct {
		processors int
		want       uint64
	}{2: {m.Processors(), 0}, 4: {2, 11}, 6: {2, 22}} {
		// Two numbers for each processor, the memory in use, the number of processes; pid, load,
		// and four sizes of the process.
		at := 8*test.processors + 8 + 4 + 4 + 4 + 4*8
		x := to.records[i].Opaque
		if x.ID != systemMessage {
			t.Fatalf("message %#x", x.ID)
		}
		if got := binary.LittleEndian.Uint64(x.Data[at:]); got != test.want {
			t.Errorf("state %d: %d live bytes, want %d", i, got, test.want)
		}
	}
}

// Tick writes what has waited for a second, although no record of the tracer came.
func TestTick(t *testing.T) {
	m, to := newMachine(t, Options{}, nil)
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		t.Fatal(err)
	}
	m.comment(0, "long ago")
	m.comment(now.Nano()+int64(time.Hour), "in an hour")
	if err := m.Tick(); err != nil {
		t.Fatal(err)
	}
	if len(to.records) != 1 || to.records[0].Comment != "long ago" {
		t.Errorf("got %q", to.kinds())
	}
	m.Stop()
	m.Stop()
}
