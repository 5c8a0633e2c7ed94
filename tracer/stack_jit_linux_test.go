package tracer

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"rtrace-bpf/internal/testutil"
	"rtrace-bpf/tracer/plan"
)

// Virtual machines that compile at run time: their code has frame pointers and no tables.
func TestStacksOfVirtualMachines(t *testing.T) {
	testutil.NeedBPF(t)
	const enough = 0.99
	t.Run("node", func(t *testing.T) {
		const script = `const fs = require("fs"), zlib = require("zlib");
fs.writeSync(3, "ready\n"); fs.readSync(4, Buffer.alloc(1));
for (let i = 0; i < 400; i++) {
  const b = Buffer.alloc(30000 + i, "text " + i);
  const o = JSON.parse(JSON.stringify({ i, s: zlib.deflateSync(b).toString("base64"), a: [...Array(50).keys()] }));
  o.a.sort((x, y) => y - x).map((x) => new RegExp("a" + x + i).test(o.s));
  zlib.inflateSync(Buffer.from(o.s, "base64"));
}`
		child := testutil.Start(t, exec.Command(installed(t, "node"), "-e", script))
		child.Ready()
		tallied(t, plan.UnwindAuto, child, child.Go).atLeast(t, 20000, enough, true)
	})
	t.Run("java", func(t *testing.T) {
		const source = `import java.io.*; import java.util.*; import java.util.zip.*;
public class Work {
  static int nested(int n) { return n == 0 ? new TreeMap<Integer, String>(Map.of(1, "a")).size() : nested(n - 1) + 1; }
  static void work(int rounds) {
    byte[] text = new byte[20000];
    for (int i = 0; i < rounds; i++) {
      Arrays.fill(text, (byte) i);
      Deflater d = new Deflater(); d.setInput(text); d.finish(); d.deflate(new byte[30000]); d.end();
      nested(i % 50); String.format("%d %s", i, text).intern();
    }
  }
  public static void main(String[] a) throws Exception {
    work(3); // loads the libraries
    try (FileOutputStream ready = new FileOutputStream("/proc/self/fd/3")) { ready.write("ready\n".getBytes()); }
    new FileInputStream("/proc/self/fd/4").read();
    work(1500);
  }
}`
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "Work.java"), []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(installed(t, "javac"), "-d", dir, filepath.Join(dir, "Work.java")).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		child := testutil.Start(t, exec.Command(installed(t, "java"), "-Xmx128m", "-cp", dir, "Work"))
		child.Ready()
		tallied(t, plan.UnwindAuto, child, child.Go).atLeast(t, 10000, enough, true)
	})
}
