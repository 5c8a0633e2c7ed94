package nettrace_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"rtrace-bpf/encoder/nettrace"
)

var errFull = errors.New("no space left on device")

// disk takes a write that fits as a whole, or nothing of it.
type disk struct {
	bytes.Buffer
	room int
}

func (d *disk) Write(b []byte) (int, error) {
	if d.Len()+len(b) > d.room {
		return 0, errFull
	}
	return d.Buffer.Write(b)
}

// A full disk holds a whole stream.
func TestFullDisk(t *testing.T) {
	records := program(20000, 50, 3)
	for _, version := range []int{nettrace.V4, nettrace.V6} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			d := &disk{room: 300 << 10}
			w, err := nettrace.New(d, nettrace.Options{Version: version})
			if err != nil {
				t.Fatal(err)
			}
			for i := 0; err == nil && i < len(records); i++ {
				err = w.WriteRecord(&records[i])
			}
			if !errors.Is(err, errFull) || !errors.Is(w.Close(), errFull) || !errors.Is(w.Close(), errFull) {
				t.Fatalf("%v", err)
			}
			got := read(t, d.Bytes())
			checkDump(t, d.Bytes())
			if n := len(got.records); n < 100 || n >= len(records) {
				t.Errorf("%d records of %d", n, len(records))
			}
		})
	}
	d := &disk{}
	w, err := nettrace.New(d, nettrace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); !errors.Is(err, errFull) || d.Len() > 0 {
		t.Errorf("without any room: %v, %d bytes", err, d.Len())
	}
}
