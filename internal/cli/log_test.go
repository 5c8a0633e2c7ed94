package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// records returns the records of a log without their times.
func records(t *testing.T, log string) (all []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log) {
		var r map[string]any
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("not JSON: %q", line)
		}
		if at, ok := r["time"].(string); !ok || at == "" {
			t.Errorf("no time: %s", line)
		}
		delete(r, "time")
		all = append(all, r)
	}
	return all
}

// A log has the same messages as the text.
func TestLog(t *testing.T) {
	hinted := WithHint(errors.New("process 47 is\x1b[2J odd"), "look")
	for name, tt := range map[string]struct {
		text   string // printed without a log
		record map[string]any
		print  func(w *bytes.Buffer, l *Log)
	}{
		"error": {
			"p: process 47 is\\x1b[2J odd\nhint: look\n",
			map[string]any{"level": "ERROR", "msg": "process 47 is\\x1b[2J odd", "program": "p", "pid": 47., "hint": "look"},
			func(w *bytes.Buffer, l *Log) { Report(w, "p", hinted); Report(l, "p", hinted) },
		},
		"usage": {
			"p: no\nhint: run 'p --help'\n",
			map[string]any{"level": "ERROR", "msg": "no", "program": "p", "hint": "run 'p --help'"},
			func(w *bytes.Buffer, l *Log) { Report(w, "p", Usagef("no")); Report(l, "p", Usagef("no")) },
		},
		"incomplete": {
			"p: note: 3 events were lost\n",
			map[string]any{"level": "WARN", "msg": "3 events were lost", "program": "p"},
			func(w *bytes.Buffer, l *Log) {
				err := Incompletef("3 events were lost")
				Report(w, "p", err)
				Report(l, "p", err)
			},
		},
		"warning": {
			"p: warning: old\n",
			map[string]any{"level": "WARN", "msg": "old", "program": "p"},
			func(w *bytes.Buffer, l *Log) {
				Message(w, slog.LevelInfo, "p", "warning: old")
				Message(l, slog.LevelInfo, "p", "warning: old")
			},
		},
		"text of a child": {
			"rtrace postproc: one\ntwo",
			map[string]any{"level": "INFO", "msg": "one", "program": "rtrace postproc"},
			func(w *bytes.Buffer, l *Log) {
				for _, part := range []string{"rtrace post", "proc: one\ntw", "o"} {
					w.WriteString(part)
					if n, err := l.Write([]byte(part)); n != len(part) || err != nil {
						t.Errorf("%d, %v", n, err)
					}
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var text, log bytes.Buffer
			l := NewLog(&log)
			tt.print(&text, l)
			l.Flush()
			if text.String() != tt.text {
				t.Errorf("%q, want %q", text.String(), tt.text)
			}
			want := []map[string]any{tt.record}
			if name == "text of a child" {
				want = append(want, map[string]any{"level": "INFO", "msg": "two", "program": ""})
			}
			if diff := cmp.Diff(want, records(t, log.String())); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// What goes to another stream on the way keeps its form.
func TestRedirect(t *testing.T) {
	var plain, out bytes.Buffer
	Message(Redirect(&out, func(w io.Writer) io.Writer { return io.MultiWriter(w, &plain) }), slog.LevelInfo, "p", "text")
	Message(Redirect(NewLog(&out), func(w io.Writer) io.Writer { return io.MultiWriter(w, &plain) }), slog.LevelInfo, "p", "log")
	text, log, _ := strings.Cut(out.String(), "\n")
	if text != "p: text" || len(records(t, log)) != 1 || plain.String() != out.String() {
		t.Errorf("%q, %q", out.String(), plain.String())
	}
}
