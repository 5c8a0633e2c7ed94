package nettrace_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/trace"
)

// Records of the first events of a stream have what Microsoft's reader finds in their
// payloads.
func TestCorpusPayloads(t *testing.T) {
	compared := 0
	for _, file := range streams(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want := verdictOf(t, file)
			d, err := nettrace.NewReader(bytes.NewReader(contents(t, file)), nettrace.Options{})
			if err != nil {
				return // TestCorpusStructure tests that
			}
			var records []*trace.Record
			var r trace.Record
			var clock int64
			for err = d.ReadRecord(&r); err == nil; err = d.ReadRecord(&r) {
				records = append(records, r.Clone())
				if r.Kind == trace.KindHeader {
					clock = r.Header.ClockTime
				}
			}
			for i := range want.FirstEvents {
				compared += comparePayload(t, records, clock, &want.FirstEvents[i])
			}
		})
	}
	if compared < 40 {
		t.Errorf("only %d values were compared", compared)
	}
}

// comparePayload compares one event with its record and returns how many values it has
// compared. An event that needs a description that rtrace lacks is in the record as
// bytes.
func comparePayload(t *testing.T, records []*trace.Record, clock int64, want *payloadVerdict) int {
	t.Helper()
	for _, r := range records {
		// Microsoft's reader prints milliseconds with four digits, some of them cut.
		if math.Abs(float64(r.Time-clock)/1e6-want.Time) > 0.0002 || want.TID != 0 && r.TID != 0 && uint64(r.TID) != want.TID {
			continue
		}
		if got := valuesOf(r, want); got != nil {
			n := 0
			for name, value := range want.Payload {
				if text, ok := got[name]; ok {
					if n++; !sameValue(text, value) {
						t.Errorf("%s/%s at %v: %s is %q, want %q", want.Provider, want.Name, want.Time, name, text, value)
					}
				}
			}
			return n
		}
	}
	return 0
}

// valuesOf returns the contents of a record by the names that Microsoft's reader uses,
// or nil if the record is not of that event.
func valuesOf(r *trace.Record, want *payloadVerdict) map[string]string {
	decimal := func(n uint64) string { return strconv.FormatUint(n, 10) }
	switch {
	case r.Kind == trace.KindCall && r.Call.Function == "AllocationTick" && want.Name == "GC/AllocationTick":
		values := map[string]string{"AllocationAmount64": decimal(r.Call.Size)}
		if r.Call.ID != 0 {
			values["Address"] = decimal(r.Call.ID)
		}
		for _, a := range r.Call.Args {
			switch a.Name {
			case "type":
				values["TypeName"] = a.Value
			case "heap":
				values["AllocationKind"] = strings.ToUpper(a.Value[:1]) + a.Value[1:]
			case "object_size":
				values["ObjectSize"] = a.Value
			}
		}
		return values
	case r.Kind == trace.KindProcess && strings.HasPrefix(want.Name, "Existing") && want.Provider == "Universal.System":
		return map[string]string{"Name": r.Process.Name}
	case r.Kind == trace.KindMapping && want.Name == "ProcessMapping":
		m := &r.Mapping
		if decimal(m.Start) != want.Payload["StartAddress"] {
			return nil // several events have the same time
		}
		return map[string]string{"StartAddress": decimal(m.Start), "EndAddress": decimal(m.End), "FileOffset": decimal(m.Offset), "FileName": m.Path}
	case r.Kind == trace.KindFunction && want.Name == "ProcessSymbol":
		f := &r.Function
		if decimal(f.Start) != want.Payload["StartAddress"] {
			return nil
		}
		return map[string]string{"StartAddress": decimal(f.Start), "EndAddress": decimal(f.End), "Name": f.Name}
	case r.Kind == trace.KindSample && want.Provider == "Universal.Events" && r.Sample.Name == want.Name:
		return map[string]string{"Value": decimal(r.Sample.Weight)}
	case r.Kind == trace.KindEvent && r.Event.Provider == want.Provider && r.Event.ID == want.ID:
		values := map[string]string{}
		for _, a := range r.Event.Args {
			values[a.Name] = a.Value
		}
		return values
	}
	return nil
}

// sameValue reports whether two texts are of one value. Numbers may be hexadecimal,
// grouped, or have another number of digits.
func sameValue(got, want string) bool {
	if got == want || strings.EqualFold(got, want) {
		return true
	}
	plain := strings.ReplaceAll(want, ",", "")
	if n, err := strconv.ParseUint(plain, 0, 64); err == nil {
		return got == strconv.FormatUint(n, 10)
	}
	if at, err := time.Parse(time.RFC3339Nano, got); err == nil {
		return at.Format("01/02/2006 15:04:05") == want
	}
	if want == "SmallObjectHeap" {
		return got == "0" // it has names for some numbers
	}
	a, errA := strconv.ParseFloat(got, 64)
	b, errB := strconv.ParseFloat(plain, 64)
	return errA == nil && errB == nil && math.Abs(a-b) <= 1e-6*math.Abs(b)
}

// Everything before a cut is read, wherever the cut is, and the rest is reported as a
// cut: there is never an event that the whole stream lacks, and never another error.
func TestEveryCut(t *testing.T) {
	for _, file := range streams(t) {
		data := contents(t, file)
		if len(data) > 6000 {
			continue // the time is the square of this
		}
		whole := scan(t, bytes.NewReader(data), nettrace.Options{})
		if !errors.Is(whole.err, io.EOF) || whole.stats.Junk > 0 {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			before := uint64(0)
			for cut := range len(data) {
				got := scan(t, bytes.NewReader(data[:cut]), nettrace.Options{})
				syntax, ok := errors.AsType[*trace.SyntaxError](got.err)
				if !ok || !errors.Is(got.err, trace.ErrTruncated) || syntax.Offset < 0 || syntax.Offset > int64(cut) {
					t.Fatalf("cut at %d of %d it ends with %v", cut, len(data), got.err)
				}
				if got.events < before {
					t.Fatalf("cut at %d there are %d events, and %d in a byte less", cut, got.events, before)
				}
				before = got.events
				for key, event := range got.first {
					if w, ok := whole.first[key]; !ok || w.Payload != event.Payload {
						t.Fatalf("cut at %d there is %+v, in the whole %+v", cut, event, w)
					}
				}
				if cut%16 == 0 {
					readRecords(t, data[:cut])
				}
			}
			if before != whole.events {
				t.Errorf("without the last byte there are %d events of %d", before, whole.events)
			}
		})
	}
}

// A stream that claims to hold large things uses no memory for them.
func TestClaims(t *testing.T) {
	data := contents(t, filepath.Join(committed, "v4-own/own-v4-x64.nettrace"))
	for _, claim := range []uint32{1 << 24, 1<<31 - 1, 1<<32 - 1} {
		for at := 32; at+4 <= len(data); at += 3 {
			b := bytes.Clone(data)
			b[at], b[at+1], b[at+2], b[at+3] = byte(claim), byte(claim>>8), byte(claim>>16), byte(claim>>24)
			if used := allocated(func() { readRecords(t, b) }); used > 24<<20 {
				t.Fatalf("%#x at %d takes %d bytes", claim, at, used)
			}
		}
	}
}

// allocated returns how many bytes do allocates.
func allocated(do func()) uint64 {
	var before, behind runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&behind)
	return behind.TotalAlloc - before.TotalAlloc
}
