package dotnet

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"rtrace-bpf/trace"
)

// scripted is a trace.Reader of records that are given as "KIND TIME".
type scripted struct {
	texts []string
	err   error
}

func (l *scripted) ReadRecord(r *trace.Record) error {
	if len(l.texts) == 0 {
		return l.err
	}
	var kind string
	*r = trace.Record{}
	_, err := fmt.Sscanf(l.texts[0], "%s %d", &kind, &r.Time)
	r.Kind, _ = trace.ParseKind(kind)
	r.Exit.Process = true
	l.texts = l.texts[1:]
	return err
}

func TestMerged(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		native, managed       string
		nativeErr, managedErr error
		want                  string
		err                   error
	}{
		"by time":       {native: "header 5,process 5,call 7,call 9,end 20", managed: "call 6,event 8,call 9,call 19", want: "header 5,process 5,call 6,call 7,event 8,call 9,call 9,call 19,end 20"},
		"before it":     {native: "header 5,process 5,mapping 5,call 7,end 20", managed: "call 1,call 2", want: "header 5,process 5,mapping 5,call 1,call 2,call 7,end 20"},
		"after it":      {native: "header 5,call 7,exit 10,end 20", managed: "function 0,call 30,function 0", want: "header 5,function 0,call 7,call 30,function 0,exit 10,end 20"},
		"without times": {native: "header 5,call 7,call 9,end 20", managed: "call 8,function 0,call 12", want: "header 5,call 7,call 8,function 0,call 9,call 12,end 20"},
		"nothing":       {native: "header 5,end 20", want: "header 5,end 20"},
		"no end":        {native: "header 5,call 7", managed: "call 9", want: "header 5,call 7,call 9"},
		"native fails":  {native: "header 5,call 7", managed: "call 6,call 9", nativeErr: broken, want: "header 5,call 6,call 7,call 9", err: broken},
		"managed fails": {native: "header 5,call 7", managed: "call 6", managedErr: broken, want: "header 5,call 6", err: broken},
	} {
		t.Run(name, func(t *testing.T) {
			open := func(text string, err error) ahead {
				l := &scripted{err: io.EOF}
				if text != "" {
					l.texts = strings.Split(text, ",")
				}
				if err != nil {
					l.err = err
				}
				return ahead{from: l}
			}
			m := &merged{native: open(tt.native, tt.nativeErr), managed: open(tt.managed, tt.managedErr)}
			var got []string
			var r trace.Record
			var err error
			var calls uint64
			for {
				if err = m.ReadRecord(&r); err != nil {
					break
				}
				if r.Kind == trace.KindCall {
					if calls++; r.Call.Seq != calls {
						t.Errorf("call %d has the number %d", calls, r.Call.Seq)
					}
				}
				got = append(got, fmt.Sprintf("%v %d", r.Kind, r.Time))
			}
			want := tt.err
			if want == nil {
				want = io.EOF
			}
			if text := strings.Join(got, ","); text != tt.want || !errors.Is(err, want) {
				t.Errorf("%s, %v, want %s, %v", text, err, tt.want, want)
			}
		})
	}
}

// If the date of a runtime's clock is far off, its times are corrected by the difference.
func TestClocks(t *testing.T) {
	const hour = int64(time.Hour)
	c := clocks{wall: 100 * hour, monotonic: 10 * hour}
	if by := c.set(&trace.Header{WallTime: 101*hour + 7e6, ClockTime: 11 * hour}); by != 0 || c.native(5) != 5 {
		t.Errorf("the same clock is off by %v", by)
	}
	if by := c.set(&trace.Header{}); by != 0 {
		t.Errorf("a clock without a date is off by %v", by)
	}
	if by := c.set(&trace.Header{WallTime: 101 * hour, ClockTime: 1 * hour}); by != 10*time.Hour || c.native(1*hour) != 11*hour || c.native(0) != 0 {
		t.Errorf("off by %v, 1 h is %v", by, time.Duration(c.native(1*hour)))
	}
}
