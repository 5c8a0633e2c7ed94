package testutil

import (
	"fmt"
	"reflect"

	"rtrace-bpf/trace"
)

// Payloads names the field of trace.Record that each kind uses, or "".
var Payloads = map[trace.Kind]string{
	trace.KindHeader: "Header", trace.KindProcess: "Process", trace.KindThread: "Thread",
	trace.KindTracerModule: "TracerModule", trace.KindResource: "Resource",
	trace.KindContext: "Context", trace.KindModule: "Module", trace.KindMapping: "Mapping",
	trace.KindUnmapping: "Mapping", trace.KindCall: "Call", trace.KindHeapGrow: "HeapGrow", trace.KindHeapInfo: "HeapInfo",
	trace.KindAttachment: "Attachment", trace.KindComment: "Comment", trace.KindExec: "Exec",
	trace.KindExit: "Exit", trace.KindLost: "Lost", trace.KindOpaque: "Opaque",
	trace.KindFunction: "Function", trace.KindSample: "Sample", trace.KindEvent: "Event", trace.KindRSS: "RSS", trace.KindWindow: "Window", trace.KindCost: "Cost", trace.KindEnd: "",
}

// FullRecord returns a record in which every field, at any depth, has a value that is not zero
// and differs from the other values of its type, except for Stack.ID, which no format stores.
func FullRecord() *trace.Record {
	r, n := new(trace.Record), uint64(0)
	fill(reflect.ValueOf(r).Elem(), &n)
	r.Call.Stack.ID, r.Sample.Stack.ID, r.Event.Stack.ID = 0, 0, 0
	return r
}

// OfKind returns a record of kind k with only the field of from that k uses.
func OfKind(k trace.Kind, from *trace.Record) *trace.Record {
	r := &trace.Record{Kind: k, Time: from.Time, PID: from.PID, TID: from.TID, CPU: from.CPU}
	if payload := Payloads[k]; payload != "" {
		reflect.ValueOf(r).Elem().FieldByName(payload).Set(reflect.ValueOf(from).Elem().FieldByName(payload))
	}
	return r
}

// Payload returns the field that r's kind uses, or nil.
func Payload(r *trace.Record) any {
	if payload := Payloads[r.Kind]; payload != "" {
		return reflect.ValueOf(r).Elem().FieldByName(payload).Interface()
	}
	return nil
}

func fill(v reflect.Value, n *uint64) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0), n)
		fill(v.Index(1), n)
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8:
		v.SetUint(1 + *n%2)
	case reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(*n)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	default:
		panic("no rule to fill a " + v.Kind().String())
	}
}

// RandomRecord makes a record from the bytes of a fuzz input.
func RandomRecord(data []byte) *trace.Record {
	s := &source{data}
	kinds := uint8(trace.KindEnd)
	r := &trace.Record{Kind: trace.Kind(s.next()%kinds + 1)}
	v := reflect.ValueOf(r).Elem()
	for _, name := range []string{"Time", "PID", "TID", "CPU", Payloads[r.Kind]} {
		if name != "" {
			s.set(v.FieldByName(name))
		}
	}
	for _, s := range []*trace.Stack{&r.Call.Stack, &r.Sample.Stack, &r.Event.Stack} {
		if len(s.Names) > 0 {
			names := make([]string, len(s.Frames))
			copy(names, s.Names)
			s.Names = names
		}
	}
	return r
}

// source converts the bytes of a fuzz input to values.
type source struct{ data []byte }

func (s *source) next() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

// number returns a number of random width, so that small and large ones are likely.
func (s *source) number() uint64 {
	v := uint64(0)
	for range s.next() % 9 {
		v = v<<8 | uint64(s.next())
	}
	return v
}

func (s *source) set(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			s.set(field)
		}
	case reflect.Slice:
		n := int(s.next() % 8)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			s.set(v.Index(i))
		}
	case reflect.String:
		n := min(int(s.next()%32), len(s.data))
		v.SetString(string(s.data[:n]))
		s.data = s.data[n:]
	case reflect.Bool:
		v.SetBool(s.next()%2 == 1)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(s.number() & (1<<v.Type().Bits() - 1))
	case reflect.Int:
		v.SetInt(int64(int32(s.number()))) // formats store it in 32 bits
	case reflect.Int32, reflect.Int64:
		shift := 64 - v.Type().Bits()
		v.SetInt(int64(s.number()) << shift >> shift)
	}
}
