package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rtrace-bpf/internal/cli"
)

// calls writes traces of memory calls, a millisecond apart.
type calls struct {
	strings.Builder
	n, next uint64
}

func newCalls() *calls {
	c := &calls{next: 0x1000}
	c.WriteString(`{"format":"rtrace-jsonl","version":1}
{"kind":"header","pid":7,"clock":"monotonic"}
{"kind":"resource","pid":7,"id":1,"type":"memory","desc":"memory allocation in bytes"}
`)
	return c
}

// alloc allocates a block in a function and returns its address.
func (c *calls) alloc(function string) uint64 {
	c.n++
	c.next += 16
	fmt.Fprintf(c, `{"kind":"call","time":%d,"pid":7,"tid":7,"seq":%d,"op":"alloc","function":"malloc","resource":1,"id":"0x%x","size":10,"stack_end":"complete","stack":["0x99"],"names":["%s()"]}`+"\n",
		int64(1e12)+int64(c.n)*1e6, c.n, c.next, function)
	return c.next
}

func (c *calls) free(id uint64) {
	c.n++
	fmt.Fprintf(c, `{"kind":"call","time":%d,"pid":7,"tid":7,"seq":%d,"op":"free","function":"free","resource":1,"id":"0x%x"}`+"\n", int64(1e12)+int64(c.n)*1e6, c.n, id)
}

// cache keeps n entries, of which the oldest goes for each new one. First, some blocks from
// before the recording are freed.
func (c *calls) cache(entries, kept int, before bool) {
	var all []uint64
	for i := range entries {
		all = append(all, c.alloc("cache"))
		switch {
		case i >= kept:
			c.free(all[i-kept])
		case before:
			c.free(uint64(0x8000_0000 + 16*i))
		}
	}
}

// Blocks that are live at the end need not be leaks: leaks and report print that by the rule
// of package live, and the flag in the line leaves out that many blocks.
func TestYoungBlocks(t *testing.T) {
	for _, tt := range []struct {
		name    string
		fill    func(*calls)
		text    string // line of leaks
		page    string // line of report
		doubt   string
		younger uint64
	}{
		{
			"a steady cache, attached to for less than its entries live",
			func(c *calls) { c.cache(1000, 1000, true) },
			"the recording is short compared with the lifetimes of blocks: in its 1.999s, 1000 blocks from before it were freed. Many of the live blocks may be freed later; record longer",
			"The recording is short compared with the lifetimes of blocks: 1,000 blocks from before it were freed during it, and 1,000 of its own are still live.",
			"many-from-before", 0,
		},
		{
			"a cache from its beginning",
			func(c *calls) { c.cache(20_000, 400, false) },
			"most of these blocks are young: 100.00 % were allocated in the last 1s of the recording, and 99 of 100 freed blocks lived less than that; --min-age 1s leaves them out",
			"Most of the blocks that are still live are young: 100 % were allocated in the last 1 s of the recording",
			"mostly-young", 400,
		},
		{
			"a cache that has just begun to lose entries",
			func(c *calls) { c.cache(1200, 1000, false) },
			"the recording is short compared with the lifetimes of blocks: it lasted 1.399s, and 1 of 100 freed blocks lived about as long. Many of the live blocks may be freed later; record longer",
			"it lasted 1.4 s, and 1 in 100 of the freed blocks lived about as long",
			"short-recording", 1000,
		},
		{
			"a leak beside much that is temporary",
			func(c *calls) {
				for i := range 3000 {
					c.free(c.alloc("temporary"))
					if i%3 == 0 {
						c.alloc("leak")
					}
				}
			},
			"growing steadily: 1 group, printed first", "", "", 0,
		},
		{
			"a small trace",
			func(c *calls) { c.cache(20, 10, true) },
			"", "", "", 0,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCalls()
			tt.fill(c)
			run := func(args ...string) string {
				t.Helper()
				out, errOut, code := runRtrace(c.String(), args...)
				if code != cli.OK || errOut != "" {
					t.Fatalf("%v: exit code %d: %s", args, code, errOut)
				}
				return out
			}
			lines := strings.SplitN(run("leaks"), "\n", 3)
			if tt.text == "" && lines[1] != "" || tt.text != "" && lines[1] != tt.text {
				t.Errorf("leaks prints %q, want %q", lines[1], tt.text)
			}
			page := run("report", "--resolve=false")
			if said := strings.Contains(page, "recording is short") || strings.Contains(page, "still live are young"); said != (tt.page != "") || !strings.Contains(page, tt.page) {
				t.Errorf("the page says so: %v; want %q", said, tt.page)
			}
			file := filepath.Join(t.TempDir(), "t.jsonl")
			if err := os.WriteFile(file, []byte(c.String()), 0o600); err != nil {
				t.Fatal(err)
			}
			young := leaksOf(t, file).Young
			if tt.doubt == "" {
				if young != nil {
					t.Errorf("%+v", young)
				}
				return
			}
			if young == nil || young.Doubt != tt.doubt || young.Younger != tt.younger {
				t.Fatalf("%+v, want %s, %d", young, tt.doubt, tt.younger)
			}
			if tt.doubt == "mostly-young" {
				all, old := leaksOf(t, file), leaksOf(t, file, "--min-age", "1s")
				if old.Blocks != all.Blocks-young.Younger || old.Young != nil {
					t.Errorf("--min-age leaves %d of %d blocks, %d are young", old.Blocks, all.Blocks, young.Younger)
				}
			}
		})
	}
}
