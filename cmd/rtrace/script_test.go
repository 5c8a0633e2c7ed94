package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/rogpeppe/go-internal/testscript"

	"rtrace-bpf/internal/testutil"
)

var update = flag.Bool("update", false, "refresh the scripts' and the documents' expected texts")

// TestMain lets the test binary act as rtrace, under each of its names.
func TestMain(m *testing.M) {
	if os.Getenv("XDG_CACHE_HOME") == "" {
		if dir, err := os.UserCacheDir(); err == nil && os.Getenv("GOCACHE") == "" {
			_ = os.Setenv("GOCACHE", filepath.Join(dir, "go-build")) // in go's spelling; tests call these
		}
		_ = os.Setenv("XDG_CACHE_HOME", noCache) // not an absolute path: none
	}
	testscript.Main(m, map[string]func(){
		"rtrace": main, "rtrace-info": main, "sp-rtrace-info": main, "rtrace-postproc": main, "sp-rtrace-postproc": main,
		"rtrace-nonesuch": main, "mptrace": main, "rtrace-mptrace": main,
	})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:         "../../testdata/script",
		WorkdirRoot: t.TempDir(), // its own folder stays behind
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "UTC")
			e.Setenv("XDG_CACHE_HOME", noCache)
			corpus, err := filepath.Abs("../../testdata/corpus")
			e.Setenv("CORPUS", corpus)
			return err
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitcode, "compress": compress, "head-bytes": headBytes,
		},
		Condition: func(name string) (bool, error) {
			if name != "first" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return testutil.FirstOnly(), nil
		},
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
	})
}

// exitcode N CMD ARG…: the command ends with exit code N.
func exitcode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N command [arg…]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// compress gzip|zstd FROM TO
func compress(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: compress gzip|zstd from to")
	}
	data := []byte(ts.ReadFile(args[1]))
	var out bytes.Buffer
	switch args[0] {
	case "gzip":
		w := gzip.NewWriter(&out)
		_, err := w.Write(data)
		ts.Check(errors.Join(err, w.Close()))
	case "zstd":
		w, err := zstd.NewWriter(&out)
		ts.Check(err)
		_, err = w.Write(data)
		ts.Check(errors.Join(err, w.Close()))
	default:
		ts.Fatalf("unknown compression %s", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), out.Bytes(), 0o600))
}

// head-bytes N FROM TO: TO is FROM without its last -N bytes, or its first N.
func headBytes(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: head-bytes n from to")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	data := []byte(ts.ReadFile(args[1]))
	if n < 0 {
		n += len(data)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), data[:n], 0o600))
}
