package nettrace_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	dotnetdiag "github.com/pyroscope-io/dotnetdiag/nettrace"

	"rtrace-bpf/encoder/nettrace"
	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

// seen is what another reader finds in a stream of version 4.
type seen struct {
	trace    dotnetdiag.Trace
	objects  map[string]int
	largest  int
	kinds    map[int32]dotnetdiag.MetadataHeader
	fields   map[string][]string
	events   map[string]int // by provider and name
	payloads map[string][][]byte
	stacks   int
	distinct map[string]int // stacks, by their frames
	ends     []uint32       // number of the capturing thread's last event in each sequence point
	unknown  int            // missing stacks that events refer to
	back     int            // events that are older than the one before
}

// other reads a stream with dotnetdiag. Its numbers of events are known to be wrong, so
// it only shows whether there are any.
func other(t testing.TB, data []byte) *seen {
	t.Helper()
	s := &seen{
		objects: map[string]int{}, kinds: map[int32]dotnetdiag.MetadataHeader{}, fields: map[string][]string{},
		events: map[string]int{}, payloads: map[string][][]byte{}, distinct: map[string]int{},
	}
	d := dotnetdiag.NewDecoder(bytes.NewReader(data))
	head, err := d.OpenTrace()
	if err != nil {
		t.Fatal(err)
	}
	s.trace = *head
	known := map[int32]dotnetdiag.Stack{}
	var before int64
	for {
		var o dotnetdiag.Object
		if err := d.Decode(&o); errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return s
		} else if err != nil {
			t.Fatalf("offset %d: %v", d.Offset(), err)
		}
		s.objects[string(o.Type)]++
		s.largest = max(s.largest, o.Payload.Len())
		switch o.Type {
		case dotnetdiag.ObjectTypeStackBlock:
			b, err := dotnetdiag.StackBlockFromObject(o)
			if err != nil {
				t.Fatal(err)
			}
			for _, st := range b.Stacks {
				if _, ok := known[st.ID]; ok {
					t.Errorf("stack %d is defined again", st.ID)
				}
				known[st.ID] = st
				s.stacks++
			}
		case dotnetdiag.ObjectTypeSPBlock:
			b := o.Payload.Bytes()
			if n := binary.LittleEndian.Uint32(b[8:]); n != 1 || len(b) != 24 {
				t.Fatalf("sequence point of %d threads in %d bytes", n, len(b))
			}
			s.ends = append(s.ends, binary.LittleEndian.Uint32(b[20:]))
			clear(known)
		default:
			block, err := dotnetdiag.BlobBlockFromObject(o)
			if err != nil {
				t.Fatal(err)
			}
			var blob dotnetdiag.Blob
			for {
				if err := block.Next(&blob); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				if o.Type == dotnetdiag.ObjectTypeMetadataBlock {
					s.metadata(t, blob)
					continue
				}
				s.event(blob, known)
				if ts := blob.Header.TimeStamp; ts < before {
					s.back++
				} else {
					before = ts
				}
			}
		}
	}
}

func (s *seen) metadata(t testing.TB, blob dotnetdiag.Blob) {
	m, err := dotnetdiag.MetadataFromBlob(blob)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := s.kinds[m.Header.MetaDataID]; ok {
		t.Errorf("metadata %d is defined again", m.Header.MetaDataID)
	}
	s.kinds[m.Header.MetaDataID] = m.Header
	name := m.Header.ProviderName + "/" + m.Header.EventName
	s.fields[name] = nil
	for _, f := range m.Payload.Fields {
		s.fields[name] = append(s.fields[name], fmt.Sprintf("%s %s", f.Name, wire.Type(f.TypeCode)))
	}
}

func (s *seen) event(blob dotnetdiag.Blob, known map[int32]dotnetdiag.Stack) {
	m := s.kinds[blob.Header.MetadataID]
	name := m.ProviderName + "/" + m.EventName
	s.events[name]++
	s.payloads[name] = append(s.payloads[name], bytes.Clone(blob.Payload.Bytes()))
	st, ok := known[blob.Header.StackID]
	if !ok {
		s.unknown++
		return
	}
	frames := st.InstructionPointers(s.trace.PointerSize) // outermost first
	slices.Reverse(frames)
	s.distinct[fmt.Sprintf("%x", frames)]++
}

// Another reader finds in a stream what was written.
func TestOtherReader(t *testing.T) {
	records := program(5000, 400, 3)
	var out bytes.Buffer
	w, err := nettrace.New(&out, nettrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.SetInterval(50000)
	data, stats := write(t, w, &out, records)
	s := other(t, data)
	want := dotnetdiag.Trace{
		// 1794000000 is 2026-11-06 21:20:00 UTC, a Friday; the rest below a millisecond
		// is subtracted from the clock.
		Year: 2026, Month: 11, DayOfWeek: 5, Day: 6, Hour: 21, Minute: 20, Millisecond: 123, SyncTimeQPC: 1e9 - 456789,
		QPCFrequency: 1e9, PointerSize: 8, ProcessID: pid, NumberOfProcessors: 256, ExpectedCPUSamplingRate: 1e6,
	}
	if d := cmp.Diff(want, s.trace); d != "" {
		t.Errorf("head (-want +got):\n%s", d)
	}
	count := map[string]int{}
	distinct := map[string]int{}
	for i := range records {
		r := &records[i]
		if r.Kind == trace.KindCall {
			count["rtrace-bpf/"+r.Call.Function]++
		}
		key := fmt.Sprintf("%x", []uint64(nil))
		if r.Kind == trace.KindCall {
			key = fmt.Sprintf("%x", append([]uint64(nil), r.Call.Stack.Frames...))
		}
		distinct[key]++
	}
	maps.Copy(count, map[string]int{
		"rtrace-bpf/Header": 1, "rtrace-bpf/Process": 1, "rtrace-bpf/Resource": 1, "rtrace-bpf/Module": 2,
		"rtrace-bpf/Mapping": 2, "rtrace-bpf/Thread": 3, "rtrace-bpf/End": 1,
		"Universal.System/ExistingProcess": 1, "Universal.System/ProcessMapping": 2, "Universal.System/ProcessMappingMetadata": 2,
	})
	if d := cmp.Diff(count, s.events); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	distinct[fmt.Sprintf("%x", []uint64(nil))] += 5 // events of Universal.System have none
	if d := cmp.Diff(distinct, s.distinct); d != "" {
		t.Errorf("stacks (-want +got):\n%s", d)
	}
	if s.unknown != 0 || s.back != 0 {
		t.Errorf("%d unknown stacks, %d steps back in time", s.unknown, s.back)
	}
	if s.largest > 100<<10 {
		t.Errorf("a block has %d bytes", s.largest)
	}
	// Stacks are written once between sequence points, of which there are some.
	points := len(s.ends)
	if points < 2 || s.stacks > points*len(distinct) || uint64(s.stacks) != stats.Stacks {
		t.Errorf("%d stacks written, %d distinct ones, %d sequence points", s.stacks, len(distinct), points)
	}
	if n := len(records) + 5; s.ends[points-1] != uint32(n) || stats.Events != uint64(n) {
		t.Errorf("the last sequence point is behind event %d, %d are counted, want %d", s.ends[points-1], stats.Events, n)
	}
	if d := cmp.Diff([]string{"Address UInt64", "OldAddress UInt64", "Size UInt64", "EntryTime Int64"}, s.fields["rtrace-bpf/realloc"]); d != "" {
		t.Errorf("fields of realloc (-want +got):\n%s", d)
	}
}
