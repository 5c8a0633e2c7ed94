package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/encoder"
	"rtrace-bpf/internal/cli"
)

const nettraceCorpus = "../../testdata/corpus/nettrace"

// nettraceVerdict is the result of other readers for a stream.
type nettraceVerdict struct {
	Structure struct {
		Objects    map[string]int `json:"objects"`
		Events     int            `json:"events"`
		PerType    map[string]int `json:"events_per_type"`
		WithFrames int            `json:"events_with_frames"`
		Stacks     int            `json:"stacks"`
	} `json:"structure"`
	First []struct {
		Name    string            `json:"name"`
		Payload map[string]string `json:"payload"`
	} `json:"traceevent_first_events"`
}

func (v *nettraceVerdict) ticks() int {
	return v.Structure.PerType["Microsoft-Windows-DotNETRuntime/10/"]
}

// described is the number of events about the process, which are not events of a trace.
func (v *nettraceVerdict) described() (n int) {
	for name, count := range v.Structure.PerType {
		if strings.HasPrefix(name, "Universal.System/") {
			n += count
		}
	}
	return n
}

// printed runs a command and returns its output.
func printed(t *testing.T, args ...string) (out, errOut string) {
	t.Helper()
	out, errOut, code := runRtrace("", args...)
	if code != cli.OK {
		t.Fatalf("%v: exit code %d, %s", args, code, errOut)
	}
	return out, errOut
}

// Each command prints for streams of .NET what independent readers find in them.
func TestNettraceCommands(t *testing.T) {
	for _, file := range []string{
		"v4-live/net10-x64-linux-gcalloc-norundown", "v4-live/net10-x64-linux-gcalloc-nostack", "v4-own/own-v4-x64", "v6/own-universal",
	} {
		name := filepath.Join(nettraceCorpus, file+".nettrace")
		text, err := os.ReadFile(name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var want nettraceVerdict
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		if want.ticks() == 0 {
			t.Fatalf("%s has no allocations", file)
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Run("info", func(t *testing.T) { nettraceInfo(t, name, &want) })
			t.Run("stacks", func(t *testing.T) { nettraceStacks(t, name, &want) })
			t.Run("dump", func(t *testing.T) { nettraceDump(t, name, &want) })
			t.Run("postproc", func(t *testing.T) { nettracePostproc(t, name, &want) })
			t.Run("samples", func(t *testing.T) { nettraceSamples(t, name) })
			t.Run("convert", func(t *testing.T) { nettraceConvert(t, name, &want) })
		})
	}
}

func nettraceInfo(t *testing.T, name string, want *nettraceVerdict) {
	out, _ := printed(t, "info", name)
	version := "4\n"
	if strings.Contains(name, "/v6/") {
		version = "6.0\n"
	}
	for _, text := range []string{"nettrace " + version, fmt.Sprintf("%d AllocationTick alloc", want.ticks()), "samples that represent", "frees are not recorded"} {
		if !strings.Contains(out, text) {
			t.Errorf("no %q in\n%s", text, out)
		}
	}
}

func nettraceStacks(t *testing.T, name string, want *nettraceVerdict) {
	out, _ := printed(t, "stacks", "--json", name)
	var got stacksReport
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	records := uint64(want.Structure.Events - want.described())
	if without := records - uint64(want.Structure.WithFrames); got.Records != records || got.Without != without {
		t.Errorf("%d records, %d without a stack, want %d and %d", got.Records, got.Without, records, without)
	}
	var sum uint64
	for _, s := range got.Stacks {
		sum += s.Records
	}
	if sum != uint64(want.Structure.WithFrames) {
		t.Errorf("stacks of %d records, want %d", sum, want.Structure.WithFrames)
	}
}

func nettraceDump(t *testing.T, name string, want *nettraceVerdict) {
	out, _ := printed(t, "dump", name)
	got := map[string]int{}
	for line := range strings.Lines(out) {
		if words := strings.Fields(line); len(words) > 2 {
			got[words[2]]++
		}
	}
	blocks := 0
	for kind, n := range want.Structure.Objects {
		if kind != "Trace" && kind != "EndOfStream" {
			blocks += n
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	code, again, errOut := try(cli.Streams{In: strings.NewReader(out)}, "undump")
	if code != cli.OK || again != string(data) {
		t.Errorf("undump: exit code %d, %s, other bytes", code, errOut)
	}
	if got["EVENT"] != want.Structure.Events || got["STACK"] != want.Structure.Stacks || got["BLOCK"] != blocks || got["TRACE"] != 1 {
		t.Errorf("%v, want %d events, %d stacks, %d blocks", got, want.Structure.Events, want.Structure.Stacks, blocks)
	}
}

func nettracePostproc(t *testing.T, name string, want *nettraceVerdict) {
	out, errOut := printed(t, "postproc", name)
	if errOut != "" || strings.Count(out, " AllocationTick") < want.ticks() {
		t.Errorf("%s, %d calls of %d", errOut, strings.Count(out, " AllocationTick"), want.ticks())
	}
	rest := out
	for _, e := range want.First {
		if e.Name != "GC/AllocationTick" {
			continue
		}
		address, err := strconv.ParseUint(e.Payload["Address"], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{
			fmt.Sprintf("(%s) = %#x\n", e.Payload["AllocationAmount64"], address), "\t$type = " + e.Payload["TypeName"] + "\n",
			"\t$heap = " + strings.ToLower(e.Payload["AllocationKind"]) + "\n", "\t$object_size = " + e.Payload["ObjectSize"] + "\n",
		} {
			_, behind, found := strings.Cut(rest, text)
			if !found {
				t.Fatalf("no %q in\n%s", text, rest)
			}
			rest = behind
		}
	}
}

// nettraceSamples: output about leaks or live blocks warns that they are not known.
func nettraceSamples(t *testing.T, name string) {
	for _, args := range [][]string{{"postproc", "-l"}, {"leaks"}, {"top"}, {"convert", "-f", "pprof", "-o", filepath.Join(t.TempDir(), "x")}} {
		_, errOut := printed(t, append(args, name)...)
		if strings.Count(errOut, "Leaks and live blocks are therefore not known") != 1 {
			t.Errorf("%v: %q", args, errOut)
		}
	}
	page, _ := printed(t, "report", name)
	if !strings.Contains(page, "They show neither leaks nor live memory") {
		t.Error("the report has no remark about samples")
	}
}

// nettraceConvert: in each format the allocations are there, and with the side file also the
// fact that they are samples.
func nettraceConvert(t *testing.T, name string, want *nettraceVerdict) {
	for _, f := range encoder.Formats() {
		out := filepath.Join(t.TempDir(), "out."+f.Name)
		_, errOut := printed(t, "convert", "-f", f.Name, "-o", out, name)
		one := f.Name == "mtrc" || f.Name == "swap" // they have only memory
		if one && want.Structure.PerType["Universal.Events/6/malloc"] > 0 {
			if !strings.Contains(errOut, "left out") {
				t.Errorf("%s: %q", f.Name, errOut)
			}
			continue // the allocations of the runtime are those
		}
		function := "AllocationTick"
		if f.Name == "mtrc" {
			function = "malloc" // it has numbers for the functions of C
		}
		info, _ := printed(t, "info", out)
		if !strings.Contains(info, fmt.Sprintf("%d %s alloc", want.ticks(), function)) || !strings.Contains(info, "samples that represent") {
			t.Errorf("%s: %s", f.Name, info)
		}
		if _, errOut := printed(t, "leaks", out); !strings.Contains(errOut, "Leaks and live blocks are therefore not known") {
			t.Errorf("%s: leaks of samples: %q", f.Name, errOut)
		}
	}
	for _, f := range profileFormats {
		out := filepath.Join(t.TempDir(), "out")
		printed(t, "convert", "-f", f.name, "-o", out, name)
		if info, err := os.Stat(out); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, %v", f.name, info, err)
		}
	}
}

// For each command, our encoder's stream is the same as the trace itself.
func TestNettraceOwnCommands(t *testing.T) {
	folder := t.TempDir()
	const from = "../../testdata/corpus/sp-rtrace/c-leaks.rtrace"
	plain := filepath.Join(folder, "own.jsonl")
	printed(t, "convert", "-o", plain, from)
	for _, version := range []string{"4", "6"} {
		own := filepath.Join(folder, "own"+version+".nettrace")
		printed(t, "convert", "--nettrace-version", version, "-o", own, from)
		for _, args := range [][]string{
			{"info"},
			{"stacks"},
			{"stacks", "--json", "--kind=call"},
			{"postproc"},
			{"postproc", "-l", "-c"},
			{"leaks"},
			{"leaks", "--json"},
			{"top"},
			{"convert", "-f", "text"},
			{"convert", "-f", "sprtrace"},
			{"convert", "-f", "folded"},
		} {
			want, _ := printed(t, append(args, plain)...)
			got, _ := printed(t, append(args, own)...)
			want, got = strings.ReplaceAll(want, plain, "FILE"), strings.ReplaceAll(got, own, "FILE")
			if args[0] == "info" { // except the format, which is the first line
				want, got = want[strings.Index(want, "\n"):], got[strings.Index(got, "\n"):]
			}
			if got != want || len(want) < 20 {
				t.Errorf("version %s, %v:\n%.2000s\nwant\n%.2000s", version, args, got, want)
			}
		}
	}
}
