package machine

import (
	"slices"
	"strings"
	"testing"
)

// The texts were captured on real machines and shortened.

const statText = `cpu  137282 7375 16822 72662 564 0 204 101 0 0
cpu0 68602 3421 7866 37427 145 0 29 47 0 0
cpu3 68679 3954 8955 35234 419 7 174 53 9 9
intr 2333540 0 0 0 0 0 0
ctxt 6740910
btime 1795415480
`

func TestCPUs(t *testing.T) {
	got := make([]cpuTime, 4)
	got[1].idle = 5
	if n := parseCPUs([]byte(statText), got); n != 2 {
		t.Errorf("%d processors run, want 2", n)
	}
	want := []cpuTime{{68602 + 3421 + 7866 + 29 + 47, 37427 + 145}, {}, {}, {68679 + 3954 + 8955 + 7 + 174 + 53, 35234 + 419}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	// One more than there were at the start.
	if n := parseCPUs([]byte(statText), got[:2]); n != 1 || got[0] != want[0] {
		t.Errorf("%d, %v", n, got[:2])
	}
}

const meminfoText = `MemTotal:       24684084 kB
MemFree:        15169828 kB
MemAvailable:   17196492 kB
Buffers:          205272 kB
`

const rollupText = `56152aea9000-7fff70b76000 ---p 00000000 00:00 0                          [rollup]
Rss:                1636 kB
Pss:                 281 kB
Pss_Dirty:           116 kB
SwapPss:               7 kB
`

func TestSizes(t *testing.T) {
	if got := parseUsed([]byte(meminfoText)); got != (24684084-17196492)<<10 {
		t.Errorf("%d bytes are used", got)
	}
	if got := parseUsed([]byte("MemTotal: 5 kB\n")); got != 0 {
		t.Errorf("%d bytes are used on a machine that reports none", got)
	}
	if got, ok := parseKilobytes([]byte(rollupText), "Pss:"); got != 281<<10 || !ok {
		t.Errorf("pss %d, %v", got, ok)
	}
	if _, ok := parseKilobytes([]byte(rollupText), "Swap:"); ok {
		t.Error("a line that is not there is found")
	}
	if v, r, s, ok := parseStatm([]byte("765 425 396 5 0 123 0\n")); v != 765 || r != 425 || s != 396 || !ok {
		t.Errorf("%d %d %d %v", v, r, s, ok)
	}
	if _, _, _, ok := parseStatm(nil); ok {
		t.Error("nothing is taken for sizes")
	}
}

const diskstatsText = `   7       0 loop0 9 0 9 0 9 0 9 0 0 0 0 0 0 0 0 0 0
 259       0 nvme0n1 145742 32770 6082050 82799 26351 71029 14000504 65532 0 19336 150087 11854 84 3388368 1628 2704 126
 259       1 nvme0n1p1 145000 32770 6082050 82799 26351 71029 14000504 65532 0 19336 150087 11854 84 3388368 1628 2704 126
   8       0 sda 100 2 3000 4 500 6 70000 8 9 10 11
 253       0 dm-0 1 2 3 4 5 6 7 8 9 10 11
`

func TestDisks(t *testing.T) {
	got := parseDisks([]byte(diskstatsText), func(name string) bool { return name == "nvme0n1" || name == "sda" })
	want := Disks{145842, (6082050 + 3000) * 512, 26851, (14000504 + 70000) * 512}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if d := got.since(&Disks{145840, 512, 26851, want.BytesWritten + 1}); d != (Disks{2, want.BytesRead - 512, 0, 0}) {
		t.Errorf("since: %+v", d)
	}
}

const netText = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:    3245      30    0    0    0     0          0         0     3245      30    0    0    0     0       0          0
  eth0: 754916048   17182    0    0    0     0          0         0   827894    9985    0    0    0     0       0          0
wlan0:12      1    0    0    0     0          0         0   34    1    0    0    0     0       0          0
`

func TestInterfaces(t *testing.T) {
	got := parseInterfaces([]byte(netText))
	if got != (Network{Sent: 827894 + 34, Received: 754916048 + 12}) {
		t.Errorf("%+v", got)
	}
	if got := got.since(&Network{Sent: 827900, Received: 1}); got.Sent != 28 || got.Received != 754916059 {
		t.Errorf("since: %+v", got)
	}
}

func TestTicks(t *testing.T) {
	const text = "42 (a) (b ) R 1 2 3 0 -1 4194560 1 2 3 4 250 61 7 8 20 0 1 0 8613 1 2 3"
	if n, ok := parseTicks([]byte(text)); n != 311 || !ok {
		t.Errorf("%d, %v", n, ok)
	}
	for _, bad := range []string{"", "42 (a", "42 (a) R 1 2"} {
		if _, ok := parseTicks([]byte(bad)); ok {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestPresent(t *testing.T) {
	for text, want := range map[string]int{"0\n": 1, "0-7\n": 8, "0-3,6-9\n": 10, "0,2": 3, "": 0, "x": 0, "0-99999999": 0} {
		if got := parsePresent([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

const cpuinfoText = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu MHz\t\t: 2596.118\nflags\t\t: fpu vme\n\n" +
	"processor\t: 2\ncpu MHz\t\t: 800\n\nprocessor\t: 9\ncpu MHz\t\t: 1.000\n"

func TestMHz(t *testing.T) {
	got := make([]float32, 3)
	parseMHz([]byte(cpuinfoText), got)
	if !slices.Equal(got[:2], []float32{2596118, 0}) {
		t.Errorf("%v", got)
	}
}

func TestPercent(t *testing.T) {
	for _, tt := range []struct {
		used     int64
		capacity float64
		want     float32
	}{{5, 10, 50}, {20, 10, 100}, {-5, 10, 0}, {5, 0, 0}} {
		if got := percent(tt.used, tt.capacity); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}

func TestPace(t *testing.T) {
	reads, cost := 0, int64(10)
	spent := func(read func()) int64 { read(); return cost }
	p := pace{least: 100}
	for _, tt := range []struct {
		at   int64
		want int
	}{{1000, 1}, {1499, 1}, {1500, 2}, {1999, 2}, {2000, 3}} {
		p.run(tt.at, spent, func() { reads++ })
		if reads != tt.want {
			t.Errorf("at %d: read %d times, want %d", tt.at, reads, tt.want)
		}
	}
	p = pace{least: 1000}
	reads, cost = 0, 0
	for now := int64(5000); now < 7000; now += 100 {
		p.run(now, spent, func() { reads++ })
	}
	if reads != 2 {
		t.Errorf("what takes no time is read %d times, want 2", reads)
	}
}

// The kernel's output is trusted, but must not crash the program.
func FuzzParse(f *testing.F) {
	for _, text := range []string{statText, meminfoText, diskstatsText, netText, cpuinfoText, "0-3,6"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		b := []byte(text)
		if n := parseCPUs(b, make([]cpuTime, 3)); n > strings.Count(text, "cpu") {
			t.Errorf("%d processors", n)
		}
		parseUsed(b)
		parseStatm(b)
		parseDisks(b, func(string) bool { return true })
		parseInterfaces(b)
		parseTicks(b)
		parseMHz(b, make([]float32, 3))
		if n := parsePresent(b); n < 0 || n > 1<<16 {
			t.Errorf("%d processors are present", n)
		}
	})
}
