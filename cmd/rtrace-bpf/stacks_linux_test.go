package main

import (
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

// The loop program has four frames in addition to those that its argument selects.
func TestSummaryOfStacks(t *testing.T) {
	tests := map[string]struct {
		depth string
		args  []string
		want  []string
		end   trace.StackEnd
	}{
		"tables":     {"10", nil, []string{"stacks: 100 (1 distinct), 100 complete\n"}, trace.StackComplete},
		"all stacks": {"10", []string{"-A"}, []string{"stacks: 200 (2 distinct), 200 complete\n"}, trace.StackComplete},
		"limit":      {"80", nil, []string{"100 cut at the depth limit\n"}, trace.StackTruncated},
		"pointers":   {"10", []string{"--unwind", "fp"}, []string{"100 complete with frame-pointer steps\n"}, trace.StackComplete},
		"helper":     {"10", []string{"--unwind", "helper"}, []string{"100 from the kernel's own walker\n"}, trace.StackUnknown},
		"bounded":    {"10", []string{"--bounded"}, []string{"100 complete\n"}, trace.StackComplete},
		"by address": {"10", []string{"--sites", "address"}, []string{"100 complete\n"}, trace.StackComplete},
		"oldest":     {"10", []string{"--bounded", "--sites", "address", "--state", "hash", "--mechanism", "perf"}, []string{"100 complete\n"}, trace.StackComplete},
		"checked":    {"10", []string{"--verify-unwind", "10"}, []string{", 0 differ"}, trace.StackComplete},
		"too much":   {"300", []string{"-b", "512", "--bounded"}, []string{"stacks are cut at 128 frames: "}, trace.StackTruncated},
		"format":     {"300", []string{"-b", "512"}, []string{"100 complete\n", "stacks cut by the format: 100;"}, trace.StackComplete},
		"none":       {"10", []string{"--unwind", "none"}, nil, trace.StackAbsent},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			child := waiting(t, "loop", "1", "100", "32", tt.depth)
			r := start(t, child, tt.args...)
			child.Go()
			child.Succeed()
			r.ends(cli.OK)
			if strings.Contains(string(r.Stderr()), "stacks are cut at 128 frames: ") {
				// A kernel without bpf_loop cannot record that many frames.
				tt.want, tt.end = []string{"100 cut at the depth limit\n"}, trace.StackTruncated
			}
			for _, text := range tt.want {
				r.says(text)
			}
			for _, rec := range r.trace() {
				if rec.Kind == trace.KindCall && rec.Call.Op == trace.OpAlloc && rec.Call.Stack.End != tt.end {
					t.Fatalf("call %d: stack %s, want %s", rec.Call.Seq, rec.Call.Stack.End, tt.end)
				}
			}
		})
	}
}
