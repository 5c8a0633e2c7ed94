package main

import (
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// grown is a trace of a process whose memory grew outside its blocks.
const grown = `{"format":"rtrace-jsonl","version":1}
{"kind":"header","arch":"x86_64","pointer_size":8,"clock":"monotonic"}
{"kind":"process","time":5,"pid":7,"name":"p","depth":32}
{"kind":"resource","pid":7,"id":1,"type":"memory"}
{"kind":"rss","time":5,"pid":7,"bytes":10485760}
{"kind":"call","time":6,"pid":7,"tid":7,"seq":1,"op":"alloc","function":"malloc","resource":1,"id":"0x10","size":3145728}
{"kind":"call","time":7,"pid":7,"tid":7,"seq":2,"op":"alloc","function":"malloc","resource":1,"id":"0x20","size":8}
{"kind":"call","time":8,"pid":7,"tid":7,"seq":3,"op":"free","function":"free","resource":1,"id":"0x20"}
{"kind":"rss","time":9,"pid":7,"bytes":547356672}
{"kind":"end","time":9,"pid":7}
`

const grownVerdict = "RSS grew by 512.0 MiB, blocks allocated and still live by 3.0 MiB: the growth is not in the traced blocks. " +
	"Next: rtrace-bpf -p 7 -e memory:mmap:shmposix --heap-info, then rtrace info on that trace"

const grownObject = `"rss":{"start":10485760,"end":547356672,"live_blocks":1,"live_bytes":3145728,"grew_elsewhere":true,"verdict":"` + grownVerdict + `"}`

// All views give the same verdict on memory that grew outside blocks, and none if it grew in
// them.
func TestGrowthElsewhere(t *testing.T) {
	for _, test := range []struct {
		args       []string
		want, none string // with growth elsewhere; without
	}{
		{[]string{"info"}, "\nrss:        10485760 bytes at the start, 547356672 at the end\ngrowth:     " + grownVerdict + "\n", "growth:"},
		{[]string{"info", "--json"}, grownObject, `"grew_elsewhere":true`},
		{[]string{"leaks"}, grownVerdict + "\nstill live at the end: 1 block ", "RSS grew"},
		{[]string{"leaks", "--min-size", "4M"}, grownVerdict + "\nstill live at the end: 0 blocks ", "RSS grew"},
		{[]string{"leaks", "--json"}, grownObject, `"grew_elsewhere":true`},
		{[]string{"report", "--resolve=false"}, grownVerdict, "RSS grew"},
	} {
		code, out, errOut := try(cli.Streams{In: strings.NewReader(grown)}, test.args...)
		if code != cli.OK || !strings.Contains(unspaced(out, test.args), test.want) {
			t.Errorf("%v: exit code %d\n%s\n%.2000s", test.args, code, errOut, out)
		}
		little := strings.ReplaceAll(grown, "547356672", "13631488")
		code, out, errOut = try(cli.Streams{In: strings.NewReader(little)}, test.args...)
		if code != cli.OK || strings.Contains(unspaced(out, test.args), test.none) {
			t.Errorf("%v, little growth: exit code %d\n%s\n%.2000s", test.args, code, errOut, out)
		}
	}
}

// unspaced returns output without the white space between the tokens of JSON.
func unspaced(out string, args []string) string {
	if args[len(args)-1] != "--json" {
		return out
	}
	lines := strings.Split(out, "\n")
	for i := range lines {
		lines[i] = strings.Replace(strings.TrimSpace(lines[i]), `": `, `":`, 1)
	}
	return strings.Join(lines, "")
}

// A part of a trace has no verdict: the resident memory at that time is not known.
func TestGrowthOfAWindow(t *testing.T) {
	code, out, errOut := try(cli.Streams{In: strings.NewReader(grown)}, "leaks", "--to", "1")
	if code != cli.OK || strings.Contains(out, "RSS") {
		t.Errorf("exit code %d\n%s\n%s", code, errOut, out)
	}
}

// The resident memory survives conversion to each format with its side file, and back.
func TestConvertKeepsRSS(t *testing.T) {
	for _, format := range []string{"sprtrace", "text", "mtrc", "swap", "nettrace", "jsonl"} {
		dir := t.TempDir()
		code, _, errOut := try(cli.Streams{In: strings.NewReader(grown)}, "convert", "-f", format, "-o", dir+"/out", "-")
		if code != cli.OK {
			t.Errorf("%s: exit code %d\n%s", format, code, errOut)
			continue
		}
		code, out, errOut := try(cli.Streams{}, "convert", "-f", "jsonl", "-o", "-", dir+"/out")
		if code != cli.OK || !strings.Contains(out, `,"bytes":10485760}`) || !strings.Contains(out, `,"bytes":547356672}`) || strings.Count(out, `"kind":"rss"`) != 2 {
			t.Errorf("%s: exit code %d\n%s\n%s", format, code, errOut, out)
		}
	}
}
