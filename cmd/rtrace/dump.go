package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"rtrace-bpf/decoder"
	"rtrace-bpf/decoder/mtrc"
	"rtrace-bpf/decoder/nettrace"
	"rtrace-bpf/decoder/sprtrace"
	"rtrace-bpf/decoder/swap"
	"rtrace-bpf/encoder/jsonl"
	"rtrace-bpf/internal/cli"
	"rtrace-bpf/trace"
)

func dumpCommand() command {
	return command{
		name: "dump",
		page: cli.Page{
			Summary:  "print every packet of a trace with its offset and fields",
			Synopsis: []string{"[-o OUT] [--records] [FILE]"},
			About: "Prints a binary format packet by packet, as described on its page in docs/formats. 'rtrace undump' converts the output back to the same bytes. A text " +
				"format has no packets: its records are printed as jsonl. The side file is not used.",
			Examples: []cli.Example{
				{Does: "print the first packets", Command: "rtrace dump rtrace-raw-4711-0 | head"},
				{Does: "change a trace by hand", Command: "rtrace dump trace | sed s/malloc/calloc/ | rtrace undump -o changed"},
			},
		},
		setup: func(f *flags) runFunc {
			var (
				out     string
				records bool
				ui      bool
				in      inputFlags
			)
			group := f.group("Output")
			group.StringVarP(&out, "output", "o", "", "write to the file `OUT`; - is standard output (the default)")
			group.BoolVar(&records, "records", false, "print the records that the packets become, as jsonl")
			input := f.group("Input")
			input.BoolVar(&in.strict, "strict", false, "fail at packets that are unknown or do not parse")
			input.BoolVar(&ui, "swap-ui", false, "FILE is the file named by a SWAP message UI_HIERARCHY, which cannot be recognised by its contents")
			return func(ctx context.Context, s cli.Streams, args []string) error {
				return dump(ctx, s, args, out, records, ui, in.strict)
			}
		},
	}
}

func dump(ctx context.Context, s cli.Streams, args []string, outName string, records, ui, strict bool) (err error) {
	raw, name, stop, err := openBytes(ctx, s, args)
	if err != nil {
		return err
	}
	defer stop()
	out, err := create(s, outName, name, textContent)
	if err != nil {
		return err
	}
	defer func() { err = out.finish(err) }()
	in, err := decoder.NewInput(raw)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	format, err := in.Format()
	if err != nil && !ui {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	w := bufio.NewWriterSize(out, 64<<10)
	if ui {
		format = "swap-ui"
	}
	if packets := packetDumps[format]; packets != nil && !records {
		err = packets(w, in, strict)
		if e := in.Err(); e != nil && (err == nil || errors.Is(err, trace.ErrTruncated)) {
			err = e
		}
		err = cut(name, err)
	} else {
		err = dumpRecords(ctx, w, in, name, decoder.Options{Strict: strict, NoSide: true, Warn: warner(s.Err, "dump")})
	}
	if e := w.Flush(); e != nil {
		return e
	}
	return err
}

// packetDumps print the binary formats packet by packet.
var packetDumps = map[string]func(w io.Writer, r io.Reader, strict bool) error{
	"sprtrace": func(w io.Writer, r io.Reader, strict bool) error {
		return sprtrace.Dump(w, r, sprtrace.Options{Strict: strict})
	},
	"mtrc": func(w io.Writer, r io.Reader, strict bool) error {
		return mtrc.Dump(w, r, mtrc.Options{Strict: strict})
	},
	"swap":         swapDump(swap.Dump),
	"swap-control": swapDump(swap.DumpControl),
	"swap-ui":      swapDump(swap.DumpUI),
	"nettrace": func(w io.Writer, r io.Reader, strict bool) error {
		return nettrace.Dump(w, r, nettrace.Options{Strict: strict})
	},
}

// swapDump makes a dump of one kind of SWAP file. The dump reports damage.
func swapDump(dump func(io.Writer, io.Reader, swap.Options) (uint64, error)) func(io.Writer, io.Reader, bool) error {
	return func(w io.Writer, r io.Reader, strict bool) error {
		damaged, err := dump(w, r, swap.Options{Strict: strict})
		if err == nil && damaged > 0 {
			return cli.Incompletef("%s not parse; the dump shows why", plural(damaged, "message")+" did")
		}
		return err
	}
}

func dumpRecords(ctx context.Context, w io.Writer, r io.Reader, name string, o decoder.Options) error {
	t, err := decoder.Open(r, o)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	in := &input{Trace: t, name: name}
	out := jsonl.New(w)
	err = in.outcome(trace.Copy(out, &untilDoneReader{ctx: ctx, r: t}))
	if e := out.Close(); e != nil {
		err = e
	}
	return errors.Join(err, t.Close())
}
