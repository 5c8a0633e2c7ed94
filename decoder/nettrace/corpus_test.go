package nettrace_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/trace"
)

const committed = "../../testdata/corpus/nettrace"

// streams returns the names of the streams of the corpus, including those that may not
// be redistributed if their folder is given.
func streams(t testing.TB) []string {
	t.Helper()
	folders := []string{committed}
	if folder := os.Getenv("RTRACE_CORPUS"); folder != "" {
		folders = append(folders, filepath.Join(folder, "nettrace"))
	} else if _, ok := t.(*testing.T); ok {
		t.Log("RTRACE_CORPUS is not set: streams that may not be redistributed are left out")
	}
	seen := map[string]bool{}
	var files []string
	for _, folder := range folders {
		for _, pattern := range []string{"*/*.nettrace", "*/*/*.nettrace"} {
			list, err := filepath.Glob(filepath.Join(folder, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range list {
				if !seen[filepath.Base(f)] {
					seen[filepath.Base(f)] = true
					files = append(files, f)
				}
			}
		}
	}
	if len(files) < 4 {
		t.Fatalf("only %d streams", len(files))
	}
	return files
}

// verdict holds the results of other readers for a stream.
type verdict struct {
	Structure struct {
		Format       string            `json:"format"`
		Objects      map[string]uint64 `json:"objects"`
		Metadata     uint64            `json:"metadata_records"`
		Events       uint64            `json:"events"`
		WithStackID  uint64            `json:"events_with_stack_id"`
		WithFrames   uint64            `json:"events_with_frames"`
		Sorted       uint64            `json:"sorted_events"`
		PerType      map[string]uint64 `json:"events_per_type"`
		Unresolved   uint64            `json:"unresolved_metadata"`
		Stacks       uint64            `json:"stacks"`
		Empty        uint64            `json:"empty_stacks"`
		Frames       uint64            `json:"frames"`
		MaxFrames    int               `json:"max_frames"`
		Gaps         uint64            `json:"sequence_gaps"`
		Trailing     *int64            `json:"trailing_bytes"`
		Error        *string           `json:"error"`
		Trace        traceVerdict      `json:"trace"`
		FirstEvents  []eventVerdict    `json:"first_events"`
		FirstStacks  []stackVerdict    `json:"first_stacks"`
		FirstRecords []metaVerdict     `json:"metadata"`
	} `json:"structure"`
	TraceEvent struct {
		Events uint64            `json:"events"`
		Lost   uint64            `json:"lost"`
		Error  *string           `json:"error"`
		Header map[string]string `json:"header"`
	} `json:"traceevent"`
	FirstEvents []payloadVerdict `json:"traceevent_first_events"`
	Diag        *struct {
		Events         uint64            `json:"events"`
		WithStack      uint64            `json:"events_with_stack"`
		Frames         uint64            `json:"frames"`
		MaxFrames      int               `json:"max_frames"`
		Metadata       uint64            `json:"metadata"`
		PerEvent       map[string]uint64 `json:"per_event"`
		SequencePoints uint64            `json:"sequence_points"`
		Stacks         uint64            `json:"stacks"`
		Error          *string           `json:"error"`
	} `json:"dotnetdiag"`
}

type traceVerdict struct {
	Time        [8]uint16         `json:"time"`
	SyncQPC     int64             `json:"sync_qpc"`
	SyncTicks   int64             `json:"sync_ticks"`
	Frequency   uint64            `json:"freq"`
	PointerSize int               `json:"pointer_size"`
	PID         uint32            `json:"pid"`
	Processors  uint32            `json:"processors"`
	Sampling    uint32            `json:"cpu_sampling_rate"`
	Pairs       map[string]string `json:"kv"`
}

type eventVerdict struct {
	Event   string   `json:"event"`
	Time    uint64   `json:"ts"`
	TID     uint64   `json:"tid"`
	Seq     uint32   `json:"seq"`
	Stack   uint32   `json:"stack_id"`
	Sorted  bool     `json:"sorted"`
	Payload string   `json:"payload_hex"`
	Size    uint32   `json:"payload_size"`
	Frames  []string `json:"frames"`
}

type stackVerdict struct {
	ID     uint32   `json:"id"`
	Frames []string `json:"ips"`
}

type metaVerdict struct {
	ID       uint32 `json:"id"`
	Provider string `json:"provider"`
	EventID  uint32 `json:"event_id"`
	Name     string `json:"name"`
	Keywords uint64 `json:"keywords"`
	Version  uint32 `json:"version"`
	Level    uint32 `json:"level"`
	Opcode   uint8  `json:"opcode"`
	Fields   []any  `json:"fields"`
	Params   []any  `json:"v2fields"`
}

type payloadVerdict struct {
	Time     float64           `json:"t"`
	PID      uint64            `json:"pid"`
	TID      uint64            `json:"tid"`
	CPU      uint32            `json:"cpu"`
	Provider string            `json:"prov"`
	ID       uint32            `json:"id"`
	Name     string            `json:"name"`
	Payload  map[string]string `json:"payload"`
}

func verdictOf(t testing.TB, file string) (v verdict) {
	t.Helper()
	if err := json.Unmarshal(contents(t, file+".json"), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func contents(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// read holds the results of a scanner for a stream.
type read struct {
	info                               nettrace.Info
	stats                              nettrace.ScanStats
	events, withID, withFrames, sorted uint64
	lost                               uint64
	maxFrames                          int
	perType                            map[string]uint64
	first                              map[string]eventVerdict // by sequence number and thread
	err                                error
	disordered                         uint64
}

func name(e *nettrace.Event) string {
	if e.Meta == nil {
		return "unresolved"
	}
	return fmt.Sprintf("%s/%d/%s", e.Meta.Provider, e.Meta.EventID, e.Meta.Name)
}

// key identifies an event within a stream.
func key(name string, time, tid uint64, seq uint32) string {
	return fmt.Sprint(name, " ", time, " ", tid, " ", seq)
}

func scan(t testing.TB, r io.Reader, o nettrace.Options) (got read) {
	t.Helper()
	got.perType, got.first = map[string]uint64{}, map[string]eventVerdict{}
	s, err := nettrace.NewScanner(r, o)
	if err != nil {
		got.err = err
		return got
	}
	last := uint64(0)
	for {
		e, err := s.Next()
		if err != nil {
			got.err = err
			break
		}
		if e.Time < last {
			got.disordered++
		}
		last = max(last, e.Time)
		if e.Lost > 0 {
			got.lost += e.Lost
			continue
		}
		got.add(e)
	}
	got.info, got.stats = s.Info(), s.Stats()
	return got
}

func (r *read) add(e *nettrace.Event) {
	r.events++
	if e.Head.Stack != 0 {
		r.withID++
	}
	if len(e.Stack) > 0 {
		r.withFrames++
	}
	if e.Sorted {
		r.sorted++
	}
	r.maxFrames = max(r.maxFrames, len(e.Stack))
	r.perType[name(e)]++
	tid := e.Head.Thread
	payload := hex.EncodeToString(e.Payload)
	frames := []string{}
	for _, f := range e.Stack {
		frames = append(frames, fmt.Sprintf("%#x", f))
	}
	k := key(name(e), e.Time, tid, e.Sequence)
	if _, twice := r.first[k]; !twice {
		r.first[k] = eventVerdict{name(e), e.Time, tid, e.Sequence, e.Head.Stack, e.Sorted, payload, e.Size, frames}
	}
}

// Every stream is read as an independent reader reads it.
func TestCorpusStructure(t *testing.T) {
	for _, file := range streams(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want := verdictOf(t, file)
			data := contents(t, file)
			got := scan(t, bytes.NewReader(data), nettrace.Options{})
			compareEnd(t, &want, &got, len(data))
			if want.TraceEvent.Error != nil && !errors.Is(got.err, trace.ErrTruncated) && got.err != io.EOF {
				return // the two readers count up to different places
			}
			compareStructure(t, &want, &got)
			compareFirst(t, &want, &got)
		})
	}
}

// payloadError reports whether an error of the reference reader is about the payload of
// an event, which other readers do not parse. TestPayloadErrors tests those.
func payloadError(text string) bool { return strings.Contains(text, "MethodILToNativeMap") }

func compareEnd(t *testing.T, want *verdict, got *read, size int) {
	t.Helper()
	reference := want.TraceEvent.Error
	switch {
	case reference == nil || payloadError(*reference):
		if !errors.Is(got.err, io.EOF) {
			t.Fatalf("it ends with %v", got.err)
		}
		return
	case strings.Contains(*reference, "past end"):
		if !errors.Is(got.err, trace.ErrTruncated) {
			t.Fatalf("it ends with %v, want that it is cut", got.err)
		}
	default:
		if !errors.Is(got.err, trace.ErrMalformed) && !errors.Is(got.err, trace.ErrUnsupported) {
			t.Fatalf("it ends with %v, want %s", got.err, *reference)
		}
		if _, index, ok := strings.Cut(*reference, "thread index "); ok && !strings.Contains(got.err.Error(), "thread index "+index) {
			t.Errorf("it ends with %v, want %s", got.err, *reference)
		}
	}
	syntax, ok := errors.AsType[*trace.SyntaxError](got.err)
	if !ok || syntax.Offset < 0 || syntax.Offset > int64(size) || syntax.Format != "nettrace" {
		t.Errorf("%#v", got.err)
	}
}

func compareStructure(t *testing.T, want *verdict, got *read) {
	t.Helper()
	w := &want.Structure
	objects := map[string]uint64{}
	for kind, n := range w.Objects {
		if strings.HasPrefix(kind, "unknown") {
			kind = "unknown"
		}
		objects[kind] += n
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"objects", got.stats.Objects, objects},
		{"descriptions", got.stats.Metadata, w.Metadata},
		{"events", got.events, w.Events},
		{"events counted", got.stats.Events, w.Events},
		{"events with a stack id", got.withID, w.WithStackID},
		{"events with frames", got.withFrames, w.WithFrames},
		{"sorted events", got.sorted, w.Sorted},
		{"events per type", got.perType, w.PerType},
		{"events without description", got.stats.Undescribed, w.Unresolved},
		{"stacks", got.stats.Stacks, w.Stacks},
		{"frames", got.stats.Frames, w.Frames},
		{"lost", got.lost, want.TraceEvent.Lost},
		{"lost counted", got.stats.Lost, want.TraceEvent.Lost},
		{"late", got.stats.Late, uint64(0)},
		{"order", got.disordered, uint64(0)},
		{"references to unknown stacks", got.stats.NoStack, uint64(0)},
	} {
		if d := cmp.Diff(c.want, c.got); d != "" {
			t.Errorf("%s: %s", c.what, d)
		}
	}
	if w.Trailing != nil && got.stats.Junk != *w.Trailing {
		t.Errorf("%d bytes behind the end, want %d", got.stats.Junk, *w.Trailing)
	}
	compareInfo(t, want, got)
	if want.Diag == nil || want.Diag.Error != nil || strings.Contains(t.Name(), "V5") || strings.Contains(t.Name(), "WellKnown") {
		return
	}
	if d := want.Diag; got.events != d.Events || got.stats.Stacks != d.Stacks || got.stats.Frames != d.Frames ||
		got.stats.Metadata != d.Metadata || got.maxFrames > d.MaxFrames {
		t.Errorf("%+v, but dotnetdiag read %+v", got.stats, d)
	}
}

func compareInfo(t *testing.T, want *verdict, got *read) {
	t.Helper()
	w, i := want.Structure.Trace, got.info
	if i.Time != w.Time || i.Sync != uint64(w.SyncQPC+w.SyncTicks) || i.Frequency != w.Frequency || i.PointerSize != w.PointerSize {
		t.Errorf("%+v, want %+v", i, w)
	}
	if i.Major == 4 && (i.ProcessID != w.PID || i.Processors != w.Processors || i.Sampling != w.Sampling) {
		t.Errorf("%+v, want %+v", i, w)
	}
	pairs := map[string]string{}
	for _, p := range i.Pairs {
		pairs[p.Key] = p.Value
	}
	if len(pairs) > 0 || len(w.Pairs) > 0 {
		if d := cmp.Diff(w.Pairs, pairs); d != "" {
			t.Error(d)
		}
	}
}

func compareFirst(t *testing.T, want *verdict, got *read) {
	t.Helper()
	for _, w := range want.Structure.FirstEvents {
		g, ok := got.first[key(w.Event, w.Time, w.TID, w.Seq)]
		if !ok {
			t.Errorf("event is missing: %+v", w)
			continue
		}
		if strings.HasPrefix(g.Payload, w.Payload) && len(w.Payload) >= 32 {
			g.Payload = w.Payload // of long payloads, only the beginning is known
		}
		if len(w.Frames) < len(g.Frames) {
			g.Frames = g.Frames[:len(w.Frames)]
		}
		if d := cmp.Diff(w, g); d != "" {
			t.Error(d)
		}
	}
}
