package testutil

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// defaultFlags keep frame pointers, so that stacks can be walked without tables, and keep the
// compiler from optimising calls of the allocator.
var defaultFlags = []string{"-O2", "-g", "-fno-omit-frame-pointer", "-fno-builtin", "-pthread", "-Wall", "-Wextra"}

// programs holds the programs that this test binary has built so far.
var programs struct {
	sync.Mutex
	dir   string // empty unless Main runs the tests
	built map[string]*program
}

type program struct {
	once sync.Once
	path string
	text string // the compiler's output
	err  error
}

// Main runs the tests of a package whose tests build programs; TestMain calls it and returns.
// The programs are then built once for all tests and removed at the end, instead of once per
// test. Main also declares -update for Golden.
func Main(m *testing.M) {
	declareUpdate()
	dir, err := os.MkdirTemp("", "rtrace-progs-")
	if err == nil {
		programs.dir = dir
		programs.built = make(map[string]*program)
		defer os.RemoveAll(dir)
	}
	m.Run()
}

// Build compiles testdata/progs/name.c (or name.cpp) and returns the path of the program. flags
// are added to the compiler's command line, after the source file. The same program with other
// flags is another file with the same name. A flag that is the path of a program is a library
// to link with. CC and CXX name the compilers; the defaults are gcc and g++.
func Build(t testing.TB, name string, flags ...string) string {
	t.Helper()
	source := Source(t, name)
	if programs.dir == "" {
		beforeStart(t, name)
		p := compile(filepath.Join(t.TempDir(), name), source, flags)
		return p.use(t, name)
	}
	key := programKey(name, flags)
	programs.Lock()
	p, known := programs.built[key]
	if !known {
		p = new(program)
		programs.built[key] = p
	}
	programs.Unlock()
	if _, ok := prepared(key, name); !known && !ok {
		beforeStart(t, name)
	}
	p.once.Do(func() {
		if path, ok := prepared(key, name); ok {
			p.path = path
			return
		}
		dir := filepath.Join(programs.dir, key)
		if p.err = os.Mkdir(dir, 0o755); p.err != nil {
			return
		}
		made := compile(filepath.Join(dir, name), source, flags)
		p.path, p.text, p.err = made.path, made.text, made.err
		if p.err == nil {
			p.path, p.err = prepare(key, made.path)
		}
	})
	return p.use(t, name)
}

// BuildText compiles the text of a C program with only these flags, and returns the path of the
// output. CC names the compiler; the default is gcc.
func BuildText(t testing.TB, text string, flags ...string) string {
	t.Helper()
	const name = "text"
	key := programKey(text, flags)
	if path, ok := prepared(key, name); ok {
		return path
	}
	beforeStart(t, name)
	dir := t.TempDir()
	source, to := filepath.Join(dir, name+".c"), filepath.Join(dir, name)
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &program{}
	said, err := exec.Command(setting("CC", "gcc"), append([]string{"-o", to, source}, flags...)...).CombinedOutput()
	if p.text, p.err = string(said), err; err == nil {
		p.path, p.err = prepare(key, to)
	}
	return p.use(t, strings.Join(flags, " "))
}

// programKey distinguishes programs of one name. It does not depend on the folder of the
// libraries that they are linked with.
func programKey(name string, flags []string) string {
	all := []string{name}
	for _, flag := range flags {
		if key, ok := builtBy(flag); ok {
			flag = "@" + key
		}
		all = append(all, flag)
	}
	hash := sha256.Sum256([]byte(strings.Join(all, "\x00")))
	return hex.EncodeToString(hash[:keyBytes])
}

const keyBytes = 8

// builtBy returns the key of a program that a flag names by its path.
func builtBy(flag string) (key string, ok bool) {
	if !filepath.IsAbs(flag) {
		return "", false
	}
	key = filepath.Base(filepath.Dir(flag))
	b, err := hex.DecodeString(key)
	return key, err == nil && len(b) == keyBytes
}

// linked returns flags with libraries replaced so that the loader still finds them if all
// programs are moved to another folder.
func linked(flags []string) (all []string) {
	for _, flag := range flags {
		if key, ok := builtBy(flag); ok {
			all = append(all, "-L"+filepath.Dir(flag), "-l:"+filepath.Base(flag), "-Wl,-rpath,$ORIGIN/../"+key)
		} else {
			all = append(all, flag)
		}
	}
	return all
}

func (p *program) use(t testing.TB, name string) string {
	t.Helper()
	if p.err != nil {
		t.Fatalf("build %s: %v (make test installs a compiler if there is none)\n%s", name, p.err, p.text)
	}
	return p.path
}

func compile(to, source string, flags []string) *program {
	compiler, language := setting("CC", "gcc"), "-std=gnu11"
	if strings.HasSuffix(source, ".cpp") {
		compiler, language = setting("CXX", "g++"), "-std=gnu++17"
	}
	args := slices.Concat(defaultFlags, []string{language, "-o", to, source}, linked(flags), []string{"-ldl"})
	if i := slices.Index(args, Musl); i >= 0 {
		args[i] = "-specs=" + muslSpecs()
	}
	text, err := exec.Command(compiler, args...).CombinedOutput()
	return &program{path: to, text: string(text), err: err}
}

// Musl is a flag for Build: the program uses musl instead of the compiler's default C library.
// MUSL_SPECS names musl's specs file.
const Musl = "-specs=musl"

func muslSpecs() string {
	found, _ := filepath.Glob("/usr/lib/*-linux-musl/musl-gcc.specs")
	return setting("MUSL_SPECS", strings.Join(found, " "))
}

func setting(name, value string) string {
	if s := os.Getenv(name); s != "" {
		return s
	}
	return value
}

// Source returns the path of the source file of a program.
func Source(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(Root(t), "testdata", "progs")
	for _, suffix := range []string{".c", ".cpp"} {
		path := filepath.Join(dir, name+suffix)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("no program %s in %s", name, dir)
	return ""
}

// Root returns the folder of the module, found from where this file was compiled or, in a
// binary built with -trimpath, from the working directory upwards.
func Root(t testing.TB) string {
	t.Helper()
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		return filepath.Dir(filepath.Dir(filepath.Dir(file)))
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("not inside the module: no go.mod above the working directory")
		}
		dir = parent
	}
}
