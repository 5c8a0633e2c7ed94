package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rtrace-bpf/decoder/mtrc"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/testutil"
	wire "rtrace-bpf/internal/wire/mtrc"
)

const mtrcFiles = "../../testdata/corpus/mpatrol/"

// Real tracing files of mpatrol survive conversion to jsonl and back byte for byte, and
// every format can represent them.
func TestConvertMTRC(t *testing.T) {
	files, err := filepath.Glob(mtrcFiles + "real/*.trace")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, path := range files {
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		code, text, errOut := try(cli.Streams{}, "convert", "-f", "jsonl", path)
		if code != cli.OK || errOut != "" {
			t.Errorf("%s: exit code %d, %s", path, code, errOut)
		}
		code, again, errOut := try(cli.Streams{In: strings.NewReader(text)}, "convert", "-f", "mtrc")
		if code != cli.OK || errOut != "" || again != string(want) {
			t.Errorf("%s: exit code %d, %s, equal %v", path, code, errOut, again == string(want))
		}
		for _, format := range []string{"sprtrace", "text"} {
			code, out, errOut := try(cli.Streams{}, "convert", "-f", format, path)
			if code != cli.OK || errOut != "" {
				t.Errorf("%s to %s: exit code %d, %s", path, format, code, errOut)
			}
			code, back, errOut := try(cli.Streams{In: strings.NewReader(out)}, "convert", "-f", "mtrc")
			if format == "text" && strings.HasSuffix(path, "fork.trace") {
				continue // text does not mark where the second stream begins
			}
			if code != cli.OK || errOut != "" {
				t.Errorf("%s from %s: exit code %d, %s", path, format, code, errOut)
			}
			if got, want := history(t, back, false), history(t, string(want), true); got != want {
				t.Errorf("%s through %s: %s", path, format, testutil.FirstDifference(got, want))
			}
		}
		code, text, errOut = try(cli.Streams{}, "dump", path)
		if code != cli.OK || errOut != "" {
			t.Errorf("%s: dump: exit code %d, %s", path, code, errOut)
		}
		code, again, errOut = try(cli.Streams{In: strings.NewReader(text)}, "undump")
		if code != cli.OK || errOut != "" || again != string(want) {
			t.Errorf("%s: undump: exit code %d, %s, equal %v", path, code, errOut, again == string(want))
		}
	}
}

// Every trace of the corpus converts to a file that obeys the rules of the format.
func TestConvertMTRCRules(t *testing.T) {
	read := 0
	err := filepath.WalkDir("../../testdata/corpus", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		for _, flags := range [][]string{nil, {"--mtrc-words=4"}, {"--mtrc-legacy"}} {
			code, out, _ := try(cli.Streams{}, append([]string{"convert", "-f", "mtrc", path}, flags...)...)
			if code == cli.Failed {
				return nil // it is not a trace
			}
			t.Run(fmt.Sprint(path, flags), func(t *testing.T) {
				rules := testutil.MTRCRules{}
				if slices.Contains(flags, "--mtrc-legacy") {
					rules.Limit = wire.LegacyLimit
				}
				rules.Check(t, []byte(out))
			})
			read++
		}
		return nil
	})
	if err != nil || read < 3*40 {
		t.Errorf("%d conversions, %v", read, err)
	}
}

func TestConvertMTRCFlags(t *testing.T) {
	name := mtrcFiles + "real/manyfn.trace"
	manyfn, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		head string
		code cli.ExitCode
		err  string
	}{
		{[]string{"-f", "mtrc"}, "MTRC\x01\x00\x00\x00\x00\x00\x00\x00\x05\x29", cli.OK, ""},
		{[]string{"-f", "mtrc", "--mtrc-words=4"}, "MTRC\x01\x00\x00\x00\x05\x29", cli.OK, "rtrace convert: warning: 1100 events have numbers of 2^32 and more, which a 32-bit mptrace reads wrongly\n"},
		{[]string{"-f", "mtrc", "--mtrc-legacy"}, "MTRC\x01\x00\x00\x00\x00\x00\x00\x00\x05\x29", cli.OK, "rtrace convert: warning: 1085 events have a thread id that was folded into 31 bits\n"},
		{[]string{"-f", "mtrc", "--mtrc-legacy", "--mtrc-words=8"}, "MTRC\x01\x00\x00\x00\x00\x00\x00\x00\x05\x29", cli.OK, "folded"},
		{[]string{"-f", "mtrc", "--mtrc-legacy", "--mtrc-words=4"}, "", cli.Usage, "--mtrc-legacy is for the mptrace of 64 bits, --mtrc-words=4 for that of 32"},
		{[]string{"-f", "mtrc", "--mtrc-words=5"}, "", cli.Usage, "--mtrc-words is 4 or 8, not 5"},
	} {
		code, out, errOut := try(cli.Streams{}, append(append([]string{"convert"}, tt.args...), name)...)
		if code != tt.code || !strings.HasPrefix(out, tt.head) || !strings.Contains(errOut, tt.err) || tt.err == "" && errOut != "" {
			t.Errorf("%v: exit code %d, %s, %.20q", tt.args, code, errOut, out)
		}
		if code == cli.OK && tt.err == "" && history(t, out, false) != history(t, string(manyfn), false) {
			t.Errorf("%v: other events", tt.args)
		}
	}
	// The suffix of a file selects the format.
	out := filepath.Join(t.TempDir(), "out.mtrc")
	if code, _, errOut := try(cli.Streams{}, "convert", "-o", out, name); code != cli.OK || errOut != "" {
		t.Fatalf("exit code %d, %s", code, errOut)
	}
	got, err := os.ReadFile(out)
	if err != nil || !bytes.Equal(got, manyfn) {
		t.Errorf("%v, equal %v", err, bytes.Equal(got, manyfn))
	}
}

// The side file has what mtrc cannot represent, and restores it: processes, names of
// threads, losses, sizes that the legacy form clamps.
func TestConvertMTRCSide(t *testing.T) {
	rich := `{"format":"rtrace-jsonl","version":1}
{"kind":"header","arch":"x86_64","pointer_size":8}
{"kind":"process","pid":7,"name":"prog","depth":32}
{"kind":"resource","pid":7,"id":1,"type":"memory","desc":"memory allocation in bytes"}
{"kind":"heapgrow","pid":7,"address":"0x55e8dc990000","size":135168}
{"kind":"thread","pid":7,"tid":8,"name":"worker"}
{"kind":"call","pid":7,"tid":7,"seq":1,"op":"alloc","function":"malloc","resource":1,"id":"0x55e8dc990010","size":4294967296,"index":1,"caller":"main","file":"a.c","line":3}
{"kind":"call","pid":7,"tid":8,"seq":2,"op":"move","function":"realloc","resource":1,"id":"0x7f0000000010","old_id":"0x55e8dc990010","size":8,"index":1}
{"kind":"lost","pid":7,"count":3,"reason":"ring full"}
{"kind":"call","pid":7,"tid":7,"seq":3,"op":"free","function":"free","resource":1,"id":"0x7f0000000010","index":1}
{"kind":"exit","pid":7,"tid":7,"process":true}
{"kind":"end"}
`
	for name, flags := range map[string][]string{"normal": nil, "legacy": {"--mtrc-legacy"}} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out.mtrc")
			args := append([]string{"convert", "-o", out}, flags...)
			if code, _, errOut := try(cli.Streams{In: strings.NewReader(rich)}, args...); code != cli.OK || (errOut == "") != (flags == nil) {
				t.Fatalf("exit code %d, %s", code, errOut)
			}
			code, back, errOut := try(cli.Streams{}, "convert", "-f", "jsonl", out)
			if code != cli.OK || errOut != "" {
				t.Fatalf("exit code %d, %s", code, errOut)
			}
			for line := range strings.Lines(rich) {
				line = strings.NewReplacer(
					`"header",`, `"header","format":"mtrc","version":"1.5.1",`, // last record
					`"depth":32`, `"depth":-1`, `"resource","pid":7`, `"resource"`, // lost
				).Replace(line)
				if flags != nil {
					line = strings.NewReplacer("0x55e8dc99", "0x19", "0x7f0000000010", "0x200010").Replace(line)
				}
				if !strings.Contains(back, line) {
					t.Errorf("%s is not in\n%s", line, back)
				}
			}
			if n, want := strings.Count(back, "\n"), strings.Count(rich, "\n"); n != want {
				t.Errorf("%d lines, want %d:\n%s", n, want, back)
			}
		})
	}
}

// A file that is cut, or breaks rules, is read up to that place.
func TestInfoMTRC(t *testing.T) {
	for _, tt := range []struct {
		file string
		code cli.ExitCode
		err  string
	}{
		{"real/fork", cli.OK, ""},
		{"handmade/h_le32", cli.OK, ""},
		{"handmade/h_notrailer", cli.Incomplete, "is cut: mtrc: offset 153: the trailer is missing"},
		{"handmade/h_unknownindex", cli.Incomplete, "has one record that cannot be read: the results do not include it"},
		{"handmade/h_v10600", cli.Failed, "version 1.6.0 is not supported"},
	} {
		code, out, errOut := try(cli.Streams{}, "info", mtrcFiles+tt.file+".trace")
		if code != tt.code || !strings.Contains(errOut, tt.err) || (code == cli.Failed) != (out == "") {
			t.Errorf("%s: exit code %d, %s", tt.file, code, errOut)
		}
		if code == cli.OK && !strings.Contains(out, "mtrc 1.5.1, ") {
			t.Errorf("%s: %s", tt.file, out)
		}
	}
}

// history lists the blocks of a file as they come and go, numbered from 1 in each stream. If
// split is true, a move is a free and an allocation.
func history(t *testing.T, data string, split bool) string {
	t.Helper()
	s, err := mtrc.NewScanner(strings.NewReader(data), mtrc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for more := true; more; {
		fmt.Fprintln(&out, "stream")
		var e wire.Event
		numbers, last := map[uint64]int{}, 0
		for err = s.Next(&e); err == nil; err = s.Next(&e) {
			if e.Kind == wire.Free || e.Kind == wire.Realloc && split {
				fmt.Fprintf(&out, "free %d\n", numbers[e.Index])
			}
			if e.Kind == wire.Alloc || e.Kind == wire.Realloc {
				last++
				numbers[e.Index] = last
				fmt.Fprintf(&out, "%d at %#x, %d bytes\n", last, e.Address, e.Size)
			}
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if more, err = s.NextStream(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}
