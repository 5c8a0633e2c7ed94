package tracer

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	decoder "rtrace-bpf/decoder/swap"
	"rtrace-bpf/encoder/swap"
	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/trace"
)

// The PROCESS_MAP and PROCESS_UNMAP messages of a trace in swap agree with what strace
// prints for the same process at the same time, in that order, with and without the
// dynamic loader. The end of the last mapping may coincide with that of the process.
func TestSwapMapsAsStraceSeesThem(t *testing.T) {
	testutil.NeedBPF(t)
	plug := testutil.Build(t, "plug", "-shared", "-fPIC")
	for program, least := range map[string]int{"mmapexec": 4, "dl": 4} {
		t.Run(program, func(t *testing.T) {
			child := testutil.Spawn(t, testutil.Build(t, program), plug, "4")
			child.Ready()
			log := straced(t, child.PID, "mmap,munmap,mprotect")
			r := attachTo(t, child.PID, nil)
			child.Go()
			child.Report()
			records := r.end()
			r.whole()
			want, shrunk := mappedByStrace(t, string(log()))
			got := unshrunk(mappedInSwap(t, records), shrunk)
			missing := len(want) - len(got)
			if missing < 0 || missing > 1 || missing == 1 && want[len(want)-1][0] != '-' || !slices.Equal(got, want[:len(got)]) {
				t.Errorf("got\n%s\nstrace\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if n := strings.Count(strings.Join(got, "\n"), "+"); n < least {
				t.Errorf("%d mappings, want %d", n, least)
			}
		})
	}
}

// mappedInSwap writes records in swap, reads them back, and returns the messages about
// mappings after the start: with + those that appeared, with - those that ended.
func mappedInSwap(t *testing.T, records []*trace.Record) (list []string) {
	t.Helper()
	var out bytes.Buffer
	w, err := swap.New(&out, swap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		if err := w.WriteRecord(rec); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	reader, err := decoder.NewReader(&out, decoder.Options{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	all, err := trace.Load(reader)
	if err != nil {
		t.Fatal(err)
	}
	start := int64(0)
	for _, rec := range all {
		m := rec.Mapping
		switch {
		case rec.Kind == trace.KindProcess:
			start = rec.Time
		case rec.Time == start:
		case rec.Kind == trace.KindMapping:
			list = append(list, fmt.Sprintf("+%#x-%#x", m.Base, m.End))
		case rec.Kind == trace.KindUnmapping:
			list = append(list, fmt.Sprintf("-%#x-%#x", m.Start, m.End))
		}
	}
	return list
}

// unshrunk joins mappings that the tracer may have seen in two sizes: where pages may be
// larger than the machine's, the dynamic loader maps a whole library and at once makes
// its end not executable.
func unshrunk(list []string, shrunk map[string]string) (whole []string) {
	for i := 0; i < len(list); i++ {
		short, ok := shrunk[list[i][1:]]
		if ok && list[i][0] == '-' && i+2 < len(list) && list[i+1] == "+"+short && list[i+2] == "-"+short {
			whole = append(whole, list[i])
			i += 2
			continue
		}
		whole = append(whole, list[i])
	}
	return whole
}

// These match the calls in strace's output, with their arguments and results.
var (
	straceMmap   = regexp.MustCompile(`^\d+ +mmap\(\w+, (\d+), (\S+), (\S+), (-?\d+), (\w+)\) += (0x[0-9a-f]+)$`)
	straceMunmap = regexp.MustCompile(`^\d+ +munmap\((0x[0-9a-f]+), (\d+)\) += 0$`)
	straceRevoke = regexp.MustCompile(`^\d+ +mprotect\((0x[0-9a-f]+), (\d+), (\S+)\) += 0$`)
)

// mappedByStrace returns the executable file mappings that appeared and ended according
// to strace, from offset 0 of the file to the end of the mapping, and what was left of
// those whose end became not executable.
func mappedByStrace(t *testing.T, log string) (list []string, shrunk map[string]string) {
	t.Helper()
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 0, 64)
		if err != nil {
			t.Fatalf("strace: %v", err)
		}
		return n
	}
	page := func(n uint64) uint64 { return (n + 4095) &^ 4095 }
	type area struct {
		start, end uint64
		text       string
	}
	var now []area
	shrunk = map[string]string{}
	unmap := func(start, end uint64) {
		now = slices.DeleteFunc(now, func(a area) bool {
			if a.end <= start || end <= a.start {
				return false
			}
			list = append(list, "-"+a.text)
			return true
		})
	}
	for line := range strings.Lines(log) {
		line = strings.TrimSuffix(line, "\n")
		if m := straceMunmap.FindStringSubmatch(line); m != nil {
			start := number(m[1])
			unmap(start, start+page(number(m[2])))
		}
		if m := straceRevoke.FindStringSubmatch(line); m != nil && !strings.Contains(m[3], "PROT_EXEC") {
			at := number(m[1])
			for _, a := range now {
				if base, _, _ := strings.Cut(a.text, "-"); a.start < at && at < a.end && shrunk[a.text] == "" {
					shrunk[a.text] = fmt.Sprintf("%s-%#x", base, at)
				}
			}
		}
		m := straceMmap.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		start := number(m[6])
		end := start + page(number(m[1]))
		unmap(start, end) // what it replaces
		if strings.Contains(m[2], "PROT_EXEC") && m[4] != "-1" {
			a := area{start, end, fmt.Sprintf("%#x-%#x", start-number(m[5]), end)}
			now = append(now, a)
			list = append(list, "+"+a.text)
		}
	}
	return list, shrunk
}
