package survey

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"rtrace-bpf/internal/explain"
	"rtrace-bpf/internal/testutil"
)

// redis is a server most of whose keys were deleted.
type redis struct {
	*testutil.Child
	t              *testing.T
	client, socket string
}

// fragmented starts a server and fills it. environment is added to its environment.
func fragmented(t *testing.T, environment ...string) *redis {
	t.Helper()
	server, client := testutil.Installed(t, "redis-check-rdb"), testutil.Installed(t, "redis-cli")
	socket := filepath.Join(t.TempDir(), "s")
	cmd := exec.Command(server, "--port", "0", "--unixsocket", socket, "--save", "", "--dir", filepath.Dir(socket))
	cmd.Args[0] = "redis-server" // the program is one file with two names
	cmd.Env = append(os.Environ(), environment...)
	r := &redis{Child: testutil.Start(t, cmd), t: t, client: client, socket: socket}
	testutil.WaitFile(t, socket, r.Child)
	r.ask("eval", `for i=1,200000 do redis.call('set','key:'..i,string.rep('x',200+i%300)) end`, "0")
	r.ask("eval", `for i=1,200000 do if i%10~=0 then redis.call('del','key:'..i) end end`, "0")
	return r
}

// ask returns the answer to a command.
func (r *redis) ask(args ...string) string {
	r.t.Helper()
	out, err := exec.Command(r.client, append([]string{"-s", r.socket}, args...)...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// info returns the figures of INFO memory.
func (r *redis) info() map[string]uint64 {
	r.t.Helper()
	info := map[string]uint64{}
	for line := range strings.Lines(r.ask("info", "memory")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			info[name] = n
		}
	}
	return info
}

// redis with the C library's malloc: its own INFO is the second opinion.
func TestRedisFragmentation(t *testing.T) {
	libraries, _ := filepath.Glob("/lib/*-linux-gnu/libc.so.6")
	if len(libraries) == 0 {
		t.Fatal("the C library was not found")
	}
	r := fragmented(t, "LD_PRELOAD="+libraries[0])
	info := r.info()
	d := document(t, r.PID)
	leads(t, d, explain.AboutHoles)
	near(t, "live", sizes(d, explain.Live).size, info["used_memory"], 0.05, 2*mib) // libraries have their own blocks
	waste := info["used_memory_rss"] - info["used_memory"]
	near(t, "free", sizes(d, explain.Free).resident, waste, 0.05, 16*mib) // RSS includes code
}

// redis with its own jemalloc. The row is what jemalloc knows as resident, which is a maximum.
// How much of it is live, only jemalloc knows: the verdict leads to the figure that shows it.
func TestRedisJemalloc(t *testing.T) {
	r := fragmented(t)
	if !strings.Contains(r.ask("info", "memory"), "mem_allocator:jemalloc") {
		t.Skip("SKIPPED: redis is built without jemalloc")
	}
	r.ask("memory", "purge") // what would otherwise go within seconds
	info := r.current()
	d := document(t, r.PID)
	leads(t, d, explain.AboutAllocator)
	row := sizes(d, explain.Allocator)
	if n := info["allocator_resident"]; row.resident > n+n/50 || row.resident < n-n/10 {
		t.Errorf("%d bytes are resident, jemalloc knows of %d at most", row.resident, n)
	}
	if row.resident < info["allocator_active"] {
		t.Errorf("%d bytes are resident, pages with live blocks have %d", row.resident, info["allocator_active"])
	}
	if live := info["allocator_allocated"]; live > row.resident/2 {
		t.Errorf("%d bytes are live of %d: the server has no fragmentation", live, row.resident)
	}
	v := d.Verdicts[0]
	if !strings.Contains(v.Text, "jemalloc, live and free blocks together") || !strings.Contains(v.Advice, "allocator_allocated") {
		t.Errorf("the verdict is %+v", v)
	}
	near(t, "RSS", d.Resident, info["used_memory_rss"], 0.05, mib)
}

// current returns the figures of INFO memory as soon as they are those of jemalloc now, give or
// take 1 %: redis asks it only now and then.
func (r *redis) current() map[string]uint64 {
	r.t.Helper()
	const most = 2000
	same := func(a, b uint64) bool { return a <= b+b/100 && b <= a+a/100 }
	for range most {
		var allocated, active, metadata, pages, resident uint64
		for line := range strings.Lines(r.ask("memory", "malloc-stats")) {
			const form = "Allocated: %d, active: %d, metadata: %d (n_thp %d), resident: %d,"
			if n, _ := fmt.Sscanf(line, form, &allocated, &active, &metadata, &pages, &resident); n == 5 {
				break
			}
		}
		info := r.info()
		if active == 0 {
			r.t.Fatal("jemalloc's statistics have another form")
		}
		if same(active, info["allocator_active"]) && same(resident, info["allocator_resident"]) {
			return info
		}
	}
	r.t.Fatal("redis does not show jemalloc's figures")
	return nil
}
