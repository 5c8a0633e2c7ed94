package nettrace_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	dotnetdiag "github.com/pyroscope-io/dotnetdiag/nettrace"

	"rtrace-bpf/decoder/nettrace"
)

// recorded is a stream of a live runtime.
const recorded = committed + "/v4-live/net10-x64-linux-gcalloc-norundown.nettrace"

// headV4 is how many bytes a stream of version 4 has before its first block.
const headV4 = 102

// object is a block of a stream of version 4.
type object struct {
	name    string
	payload []byte
}

// objects splits a stream of version 4.
func objects(data []byte) (all []object) {
	at := headV4
	for data[at] == 5 {
		name := at + 3 + 3*4
		size := name + int(binary.LittleEndian.Uint32(data[name-4:])) + 1
		payload := (size + 4 + 3) &^ 3
		end := payload + int(binary.LittleEndian.Uint32(data[size:]))
		all = append(all, object{string(data[name : size-1]), data[payload:end]})
		at = end + 1
	}
	return all
}

// appendObject appends a block to a stream.
func appendObject(b []byte, name string, payload []byte) []byte {
	b = append(b, 5, 5, 1, 2, 0, 0, 0, 2, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
	b = append(append(b, name...), 6)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(payload)))
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return append(append(b, payload...), 6)
}

// later returns a block of compressed events that happen later. The first event of a
// block has its time, the others the time since the one before.
func later(block []byte, by uint64) []byte {
	b := bytes.Clone(block[:binary.LittleEndian.Uint16(block)])
	for _, at := range []int{4, 12} {
		binary.LittleEndian.PutUint64(b[at:], binary.LittleEndian.Uint64(b[at:])+by)
	}
	rest := block[len(b):]
	fields := 0
	for bit, n := range map[byte]int{1: 1, 2: 3, 4: 1, 8: 1} {
		if rest[0]&bit != 0 {
			fields += n
		}
	}
	at := 1
	for ; fields > 0; fields-- {
		_, n := binary.Uvarint(rest[at:])
		at += n
	}
	time, n := binary.Uvarint(rest[at:])
	b = binary.AppendUvarint(append(b, rest[:at]...), time+by)
	return append(b, rest[at+n:]...)
}

// repeat returns a stream of version 4 in which everything happens the given number of
// times in a row. A sequence point separates the repetitions, so the ids of stacks
// start again.
func repeat(data []byte, times int) []byte {
	all := objects(data)
	first, last := ^uint64(0), uint64(0)
	for _, o := range all {
		if o.name == "EventBlock" {
			first = min(first, binary.LittleEndian.Uint64(o.payload[4:]))
			last = max(last, binary.LittleEndian.Uint64(o.payload[12:]))
		}
	}
	out := bytes.Clone(data[:headV4])
	for i := range times {
		by := uint64(i) * (last - first + 2)
		for _, o := range all {
			switch {
			case o.name == "EventBlock":
				out = appendObject(out, o.name, later(o.payload, by))
			case o.name == "StackBlock" || o.name == "MetadataBlock" && i == 0:
				out = appendObject(out, o.name, o.payload)
			}
		}
		out = appendObject(out, "SPBlock", binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, last+by+1), 0))
	}
	return append(out, 1)
}

// otherEvents counts the events that dotnetdiag finds in a stream, and makes it read
// the stacks.
func otherEvents(data []byte) (events int, err error) {
	d := dotnetdiag.NewDecoder(bytes.NewReader(data))
	if _, err := d.OpenTrace(); err != nil {
		return 0, err
	}
	for {
		var o dotnetdiag.Object
		if err := d.Decode(&o); err != nil {
			return events, err
		}
		switch o.Type {
		case dotnetdiag.ObjectTypeStackBlock:
			if _, err := dotnetdiag.StackBlockFromObject(o); err != nil {
				return events, err
			}
		case dotnetdiag.ObjectTypeEventBlock, dotnetdiag.ObjectTypeMetadataBlock:
			block, err := dotnetdiag.BlobBlockFromObject(o)
			var blob dotnetdiag.Blob
			for ; err == nil; err = block.Next(&blob) {
				if o.Type == dotnetdiag.ObjectTypeEventBlock && blob.Payload != nil {
					events++
				}
			}
			if !errors.Is(err, io.EOF) {
				return events, err
			}
		}
	}
}

// ourEvents counts the events that a Scanner finds.
func ourEvents(data []byte) (events int, err error) {
	s, err := nettrace.NewScanner(bytes.NewReader(data), nettrace.Options{})
	for err == nil {
		if _, err = s.Next(); err == nil {
			events++
		}
	}
	return events, err
}

// Both readers find proportionally more in a repeated stream.
func TestRepeated(t *testing.T) {
	once := contents(t, recorded)
	want := verdictOf(t, recorded).Structure
	const times = 50
	got := scan(t, bytes.NewReader(repeat(once, times)), nettrace.Options{Strict: true})
	if !errors.Is(got.err, io.EOF) || got.events != times*want.Events || got.stats.Stacks != times*want.Stacks || got.stats.Frames != times*want.Frames ||
		got.withFrames != times*want.WithFrames || got.lost != 0 || got.disordered != 0 || got.stats.Late != 0 {
		t.Errorf("%+v, %v, want %d times %+v", got.stats, got.err, times, want)
	}
	if n, err := otherEvents(repeat(once, times)); !errors.Is(err, io.EOF) || uint64(n) != times*want.Events {
		t.Errorf("dotnetdiag reads %d events, %v", n, err)
	}
}

// BenchmarkBeside reads streams of runtimes, and compares with dotnetdiag: one of 32
// MiB, which repeats a recorded one, those of the corpus, and the one that
// RTRACE_DOTNET_STREAM names.
func BenchmarkBeside(b *testing.B) {
	once := contents(b, recorded)
	inputs := map[string][]byte{"repeated": repeat(once, 32<<20/len(once))}
	names := []string{"repeated"}
	files := streams(b)
	if file := os.Getenv("RTRACE_DOTNET_STREAM"); file != "" {
		files = append(files, file)
	}
	for _, file := range files {
		data := contents(b, file)
		if n, err := otherEvents(data); len(data) > 20000 && errors.Is(err, io.EOF) && n > 0 {
			names = append(names, filepath.Base(file))
			inputs[filepath.Base(file)] = data
		}
	}
	for _, name := range names {
		data := inputs[name]
		for reader, read := range map[string]func([]byte) (int, error){"ours": ourEvents, "dotnetdiag": otherEvents} {
			b.Run(name+"/"+reader, func(b *testing.B) {
				b.SetBytes(int64(len(data)))
				b.ReportAllocs()
				events := 0
				for b.Loop() {
					n, err := read(data)
					if !errors.Is(err, io.EOF) {
						b.Fatal(err)
					}
					events += n
				}
				b.ReportMetric(float64(events)/b.Elapsed().Seconds()/1e6, "Mevents/s")
			})
		}
	}
}
