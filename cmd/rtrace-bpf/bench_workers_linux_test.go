package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"rtrace-bpf/internal/testutil"
)

// worker is a real program that works in units of some milliseconds.
type worker struct {
	name string
	// start starts the program. work has it do a unit of work, and waits for that.
	start func(b *testing.B) (pid int, work func())
}

// workers returns three programs that run scripts, two servers under load, and one that does nothing but
// allocate.
func workers() []worker {
	return []worker{
		{"python3", reading("", "/usr/bin/python3", "-c", pythonWork)},
		{"sqlite3", reading(sqliteWork, "sqlite3", ":memory:")},
		{"redis-server", startLoadedRedis},
		{"node", reading("", "node", "-e", nodeWork)},
		{"nginx", startLoadedNginx},
		{"malloc loop", func(b *testing.B) (int, func()) {
			s := startService(b, "", testutil.BuildText(b, mallocWork, "-O2"))
			return s.PID, func() { s.work(1) }
		}},
	}
}

// reading starts a program that works for each line that it reads.
func reading(line, program string, args ...string) func(b *testing.B) (int, func()) {
	return func(b *testing.B) (int, func()) {
		s := startService(b, line, program, args...)
		return s.PID, func() { s.work(1) }
	}
}

const (
	pythonWork = `import json, re, sys
rows = [{"id": i, "name": "name %d" % i, "tags": ["a", "b", str(i)], "x": i / 7} for i in range(300)]
word = re.compile(r"name (\d+)")
for line in sys.stdin:
    text = json.dumps(rows)
    total = sum(len(r["tags"]) for r in json.loads(text)) + sum(int(m) for m in word.findall(text))
    parts = sorted(text.split(","), key=len)
    joined = bytes(text, "ascii") * 3
    print(total + len(parts) + len(joined), flush=True)`
	sqliteWork = "create table if not exists t(a integer primary key, b text); delete from t;" +
		" with recursive n(i) as (select 1 union all select i+1 from n where i<500) insert into t(b) select 'text '||i from n;" +
		" select length(group_concat(b, ';')) + count(*) from (select b from t where b like '%7%' order by b);"
	nodeWork = `const rows = Array.from({length: 300}, (_, i) => ({id: i, name: 'name ' + i, tags: ['a', String(i)], x: i / 7}));
require('readline').createInterface({input: process.stdin}).on('line', () => {
  const text = JSON.stringify(rows);
  const back = JSON.parse(text).map(r => Buffer.from(r.name.repeat(20)));
  const all = Buffer.concat(back);
  console.log(all.toString('base64').length + new Set(text.split(',')).size);
});`
	mallocWork = `#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	static void *volatile kept[64];
	char line[64];
	while (fgets(line, sizeof line, stdin)) {
		for (unsigned i = 0; i < 200000; i++) {
			free(kept[i % 64]);
			kept[i % 64] = malloc(16 + i % 500);
		}
		puts("");
		fflush(stdout);
	}
	return 0;
}
`
)

// startLoadedRedis starts redis-server; a unit of work is 30 batches of 10 keys, each of which is stored,
// read and deleted.
func startLoadedRedis(b *testing.B) (int, func()) {
	r := startRedis(b)
	var batch bytes.Buffer
	const keys, answers = 10, 5 + 208 + 4 // OK, a value of 200 bytes, and how many keys were deleted
	for i := range keys {
		key := fmt.Sprintf("$5\r\nkey-%d\r\n", i)
		fmt.Fprintf(&batch, "*3\r\n$3\r\nSET\r\n%s$200\r\n%0200d\r\n*2\r\n$3\r\nGET\r\n%s*2\r\n$3\r\nDEL\r\n%s", key, i, key, key)
	}
	return r.pid, func() {
		for range 30 {
			if _, err := r.conn.Write(batch.Bytes()); err != nil {
				b.Fatal(err)
			}
			if _, err := io.CopyN(io.Discard, r.in, keys*answers); err != nil {
				b.Fatal(err)
			}
		}
	}
}

const nginxConfig = `daemon off;
master_process off;
pid pid;
error_log stderr;
events { worker_connections 64; }
http {
	access_log off;
	gzip on;
	gzip_min_length 100;
	gzip_types text/plain;
	types { text/plain txt; }
	server { listen unix:socket; root .; keepalive_requests 1000000; }
}
`

// startLoadedNginx starts nginx in one process; a unit of work is 200 requests on four connections for a
// file of 8 KB, which nginx compresses.
func startLoadedNginx(b *testing.B) (int, func()) {
	dir := b.TempDir()
	for name, text := range map[string]string{"conf": nginxConfig, "page.txt": fmt.Sprintf("%08000d\n", 7)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	socket := filepath.Join(dir, "socket")
	child := testutil.Start(b, exec.Command(testutil.Installed(b, "nginx"), "-p", dir, "-c", "conf"))
	testutil.WaitFile(b, socket, child)
	client := http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", socket) },
		MaxIdleConnsPerHost: 4,
	}, Timeout: time.Minute}
	b.Cleanup(client.CloseIdleConnections)
	get := func() error {
		answer, err := client.Get("http://nginx/page.txt")
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if n, err := io.Copy(io.Discard, answer.Body); err != nil || n != 8001 {
			return fmt.Errorf("a page of %d bytes: %w", n, err)
		}
		return nil
	}
	return child.PID, func() {
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 50 {
					if err := get(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
	}
}
