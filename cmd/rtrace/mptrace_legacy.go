package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"rtrace-bpf/internal/cli"
	"rtrace-bpf/internal/mptrace"
	"rtrace-bpf/internal/mptrace/original"
	wire "rtrace-bpf/internal/wire/mtrc"
)

// legacyAuto selects the build of the original by the trace.
const legacyAuto = "auto"

var mptraceBuilds = map[string]original.Build{
	"fixed64": original.Fixed64, "asis64": original.AsIs64, "asis32": original.AsIs32,
}

// legacyRun is the whole run with --legacy. Where the original crashes, it ends with an
// error of our own.
func (r *mptraceRun) legacyRun(path string) error {
	build := mptraceBuilds[r.legacy]
	raw := r.streams.In
	if path != "" {
		f, err := os.Open(path)
		if err != nil {
			return r.legacyError(original.Failure("Cannot open file `" + path + "'"))
		}
		defer f.Close()
		raw = f
	}
	in := bufio.NewReaderSize(&flushingReader{untilDone(r.ctx, raw), r.outputs.flush}, 64<<10)
	if r.legacy == legacyAuto {
		build = original.Fixed64
		if head, _ := in.Peek(12); is32Bit(head) {
			build = original.AsIs32
		}
	}
	err := r.legacyPrint(in, build)
	if e := r.outputs.finish(nil); e != nil {
		return e
	}
	if ctxErr := r.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	if failure, ok := errors.AsType[original.Failure](err); ok {
		return r.legacyError(failure)
	}
	return err
}

// is32Bit reports whether a trace begins with a word of 4 bytes that is 1, in either byte
// order, followed by one that is not 0.
func is32Bit(head []byte) bool {
	if len(head) < 12 {
		return false
	}
	order, next := string(head[4:8]), string(head[8:12])
	return order == "\x01\x00\x00\x00" && next != "\x00\x00\x00\x00" || order == "\x00\x00\x00\x01"
}

// legacyError prints an error like the original.
func (r *mptraceRun) legacyError(err error) error {
	fmt.Fprintf(r.streams.Err, "mptrace: %v\n", err)
	return cli.ErrReported
}

func (r *mptraceRun) legacyPrint(in io.Reader, build original.Build) error {
	reader, err := original.NewReader(in, build)
	if err != nil {
		return err
	}
	p := &mptrace.Printer{Accounts: original.NewBook(build), Text: r.outputs.text}
	if err := r.configure(p, 1, build.Words()); err != nil {
		return err
	}
	if err := p.Begin(); err != nil {
		return err
	}
	var e wire.Event
	for {
		if err := reader.Next(&e); err != nil {
			if errors.Is(err, io.EOF) {
				return p.End(true)
			}
			return errors.Join(p.End(false), err)
		}
		n, err := p.Event(&e, 0)
		if err != nil {
			return err
		}
		if n.Problem != mptrace.None {
			fmt.Fprintf(r.streams.Err, "mptrace: %s\n", original.Complaint(n))
		}
	}
}
