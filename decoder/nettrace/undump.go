package nettrace

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"

	"rtrace-bpf/internal/dumptext"
	wire "rtrace-bpf/internal/wire/nettrace"
	"rtrace-bpf/trace"
)

const (
	// dumpFormat is the name of the text in errors.
	dumpFormat = "nettrace dump"
	// maxLine limits the length of a line in a dump: a block of one event, twice in
	// hexadecimal.
	maxLine = 4*wire.MaxBlock + 1<<20
)

// IsDump reports whether line is the first line of a dump.
func IsDump(line string) bool {
	columns := strings.Fields(line)
	return len(columns) > 2 && columns[2] == wordTrace
}

// Undump writes the stream that a text from Dump describes. It ignores the first two
// columns of a line and computes the sizes of blocks, so that lines can be edited by
// hand. An error in the text is a *trace.SyntaxError with the offset of the line; the
// blocks before it are written.
func Undump(w io.Writer, r io.Reader) error {
	var u undumper
	line := 0
	err := dumptext.Undump(w, r, dumpFormat, maxLine, func(text string) ([]byte, error) {
		line++
		u.out = u.out[:0]
		err := u.parse(text)
		if err != nil {
			err = fmt.Errorf("line %d: %w", line, err)
		}
		u.offset += int64(len(u.out))
		return u.out, err
	})
	if err != nil {
		return err
	}
	u.out = u.out[:0]
	if err := u.close(); err != nil {
		return &trace.SyntaxError{Format: dumpFormat, Err: fmt.Errorf("line %d: %w", line, err)}
	}
	_, err = w.Write(u.out)
	return err
}

type undumper struct {
	lineFields
	out    []byte // bytes of the current line, and of the block before it
	offset int64  // of out in the stream
	info   Info
	v6     bool

	open       bool           // a block or the trace object was begun
	kind       wire.BlockKind // of the block
	payload    []byte
	front      []byte // bytes before the payload; nil for the canonical ones
	size       int64  // in the header of a cut block
	cut        bool
	compressed bool
	before     twinEvent
}

// parents holds the kinds of blocks to whose parts lines belong.
var parents = map[string]wire.BlockKind{
	wordMetadata: wire.BlockMetadata, wordStack: wire.BlockStack, wordEvent: wire.BlockEvent, wordSequence: wire.BlockSequence,
	wordThread: wire.BlockThread, wordRemove: wire.BlockRemoveThread, wordLabels: wire.BlockLabels,
}

func (u *undumper) parse(line string) error {
	word, err := u.split(line)
	if word == "" || err != nil {
		return err
	}
	if parent, ok := parents[word]; ok {
		if !u.open || u.kind != parent {
			return malformed("%s is not in a block %s", word, parent)
		}
		return u.item(word)
	}
	switch word {
	case wordBytes:
		if !u.open || u.kind == wire.BlockTrace {
			return malformed("%s is in no block", word)
		}
		u.payload = append(u.payload, u.hex("data")...)
	case wordCut:
		if !u.open {
			return malformed("%s follows no block", word)
		}
		u.size, u.cut = int64(u.number("size", wire.MaxBlock)), true
		if u.err == nil {
			return u.close()
		}
	case wordTrace, wordBlock, wordEnd, dumptext.Raw:
		if err := u.close(); err != nil {
			return err
		}
		u.begin(word)
	default:
		return malformed("%q is no word of a dump", word)
	}
	return u.err
}

// begin handles a line outside a block.
func (u *undumper) begin(word string) {
	raw, isRaw := u.raw()
	switch word {
	case dumptext.Raw:
		u.out = append(u.out, u.hex("data")...)
	case wordEnd:
		if !u.v6 {
			u.out = append(u.out, wire.TagNull)
		} else {
			u.out = appendBlockWord(u.out, wire.BlockEnd, 0)
		}
	case wordTrace:
		u.trace()
		if u.open, u.kind, u.payload = !u.v6, wire.BlockTrace, u.payload[:0]; !isRaw {
			raw = appendTrace(nil, &u.info)
		}
		u.out = append(u.out, raw...)
	case wordBlock:
		u.block(raw, isRaw)
	}
}

func (u *undumper) trace() {
	i := Info{Major: uint32(u.number("major", 1<<32-1)), Minor: uint32(u.number("minor", 1<<32-1))}
	times := strings.Split(u.value("time"), ",")
	if len(times) != len(i.Time) {
		u.fail(malformed("time of %d numbers, not %d", len(times), len(i.Time)))
		return
	}
	for n, v := range times {
		i.Time[n] = uint16(u.parsed("time", v, 1<<16-1))
	}
	i.Sync, i.Frequency = u.number("sync", 1<<64-1), u.number("frequency", 1<<64-1)
	i.PointerSize, i.ProcessID = int(u.number("pointer", 8)), uint32(u.number("pid", 1<<32-1))
	i.Processors, i.Sampling = uint32(u.number("processors", 1<<32-1)), uint32(u.number("sampling", 1<<32-1))
	if i.PointerSize != 4 && i.PointerSize != 8 {
		u.fail(malformed("pointers of %d bytes", i.PointerSize))
	}
	for _, f := range u.list {
		if f.quoted {
			i.Pairs = append(i.Pairs, Label{f.name, f.value})
		}
	}
	u.info, u.v6 = i, i.Major >= wire.MajorV6
}

func (u *undumper) block(raw []byte, isRaw bool) {
	kind, known := wire.BlockKind(0), false
	name := u.value("name")
	for k := wire.BlockEvent; k <= wire.BlockLabels; k++ {
		if k.String() == name && (u.v6 || k <= wire.BlockStack) {
			kind, known = k, true
		}
	}
	if !known {
		u.fail(malformed("block %q is unknown", name))
		return
	}
	u.open, u.kind, u.cut, u.front, u.payload, u.before = true, kind, false, nil, u.payload[:0], twinEvent{}
	var h blockHead
	headless := u.has("head")
	if !headless {
		for _, f := range blockFields(u.v6, kind, &h) {
			f.set(u.number(f.name, 1<<(8*f.size)-1))
		}
	}
	u.compressed = h.flags&wire.FlagCompressed != 0
	if isRaw {
		u.front = append([]byte{}, raw...)
	} else if !headless {
		u.payload = appendBlockHead(u.payload, u.v6, kind, &h)
	}
}

// close writes the block that was begun.
func (u *undumper) close() error {
	if !u.open {
		return nil
	}
	u.open = false
	size := int64(len(u.payload))
	if u.cut {
		size = u.size
	}
	if size > wire.MaxBlock {
		return tooMuch("block of %d bytes", size)
	}
	if u.kind != wire.BlockTrace {
		if u.front != nil {
			u.out = append(u.out, u.front...)
		} else {
			u.out = appendBlock(u.out, u.offset+int64(len(u.out)), u.v6, u.kind, int(size))
		}
		u.out = append(u.out, u.payload...)
	}
	if !u.v6 && !u.cut {
		u.out = append(u.out, wire.TagEndObject)
	}
	u.cut = false
	return nil
}

// item appends the bytes that a line within a block describes.
func (u *undumper) item(word string) error {
	raw, isRaw := u.raw()
	start := len(u.payload)
	switch word {
	case wordEvent:
		u.event()
	case wordStack:
		var frames []uint64
		if list := u.value("frames"); list != "" {
			for f := range strings.SplitSeq(list, ",") {
				frames = append(frames, u.parsed("frames", f, 1<<(8*u.info.PointerSize)-1))
			}
		}
		u.payload = appendStack(u.payload, u.info.PointerSize, frames)
	case wordSequence, wordRemove:
		u.payload = appendLast(u.payload, u.v6, u.number("thread", 1<<64-1), uint32(u.number("sequence", 1<<32-1)))
	default:
		if !isRaw {
			return malformed("raw= is missing")
		}
	}
	if isRaw {
		u.payload = append(u.payload[:start], raw...)
	}
	if len(u.payload) > wire.MaxBlock {
		return tooMuch("block of more than %d bytes", wire.MaxBlock)
	}
	return u.err
}

func (u *undumper) event() {
	var e twinEvent
	payload := u.hex("payload")
	e.Metadata, e.Sequence = uint32(u.number("metadata", 1<<32-1)), uint32(u.number("sequence", 1<<32-1))
	e.Capture, e.Thread = u.number("capture", 1<<64-1), u.number("thread", 1<<64-1)
	e.Processor, e.Stack = uint32(u.number("processor", 1<<32-1)), uint32(u.number("stack", 1<<32-1))
	e.Time, e.Size = u.number("time", 1<<64-1), uint32(len(payload))
	if u.has("labels") {
		e.Labels = uint32(u.number("labels", 1<<32-1))
	}
	for name, to := range map[string]*[16]byte{"activity": &e.activity, "related": &e.related} {
		if !u.has(name) {
			continue
		}
		if id := u.hex(name); len(id) == len(to) {
			*to = [16]byte(id)
		} else {
			u.fail(malformed("field %s of %d bytes, not %d", name, len(id), len(to)))
		}
	}
	sorted, err := strconv.ParseBool(u.value("sorted"))
	if e.Sorted = sorted; err != nil {
		u.fail(malformed("field sorted is %q", u.value("sorted")))
	}
	if u.compressed && u.has("flags") {
		e.flags = uint8(u.number("flags", 255))
	}
	u.payload = append(appendEvent(u.payload, u.v6, u.compressed, &e, &u.before), payload...)
	u.before = e
}

// lineFields are the fields of a line.
type lineFields struct {
	list []lineField
	err  error // error in a field that was asked for
}

type lineField struct {
	name, value string
	quoted      bool // the name was quoted
}

func (l *lineFields) fail(err error) {
	if l.err == nil {
		l.err = err
	}
}

// split splits a line and returns its word: "" for an empty line or a comment.
func (l *lineFields) split(line string) (word string, err error) {
	l.list, l.err = l.list[:0], nil
	for column := range 3 {
		line = strings.TrimLeft(line, " \t\r")
		if column == 0 && (line == "" || line[0] == '#') {
			return "", nil
		}
		word, line, _ = strings.Cut(line, " ")
	}
	word = strings.TrimRight(word, "\t\r")
	if word == "" {
		return "", malformed("not a line of a dump")
	}
	for {
		if line = strings.TrimLeft(line, " \t\r"); line == "" || line[0] == '#' {
			return word, nil
		}
		var f lineField
		end := quotedLength(line)
		if f.quoted = end > 0; !f.quoted {
			end = strings.IndexByte(line, '=')
		}
		if end <= 0 || end >= len(line) || line[end] != '=' {
			return "", malformed("%q is no field", firstOf(line))
		}
		f.name, line = line[:end], line[end+1:]
		end = 0
		for end < len(line) && line[end] != ' ' && line[end] != '\t' && line[end] != '\r' {
			end += max(quotedLength(line[end:]), 1)
		}
		f.value, line = line[:end], line[end:]
		for _, s := range []*string{&f.name, &f.value} {
			if strings.HasPrefix(*s, `"`) {
				if *s, err = strconv.Unquote(*s); err != nil {
					return "", malformed("text of field %s", firstOf(f.name))
				}
			}
		}
		l.list = append(l.list, f)
	}
}

// firstOf returns the beginning of a text, for an error.
func firstOf(s string) string { return s[:min(len(s), 20)] }

// quotedLength returns the length of the quoted text at the start of s, or 0 if there
// is none.
func quotedLength(s string) int {
	if s[0] != '"' {
		return 0
	}
	quoted, _ := strconv.QuotedPrefix(s)
	return len(quoted)
}

func (l *lineFields) has(name string) bool {
	for i := range l.list {
		if !l.list[i].quoted && l.list[i].name == name {
			return true
		}
	}
	return false
}

func (l *lineFields) value(name string) string {
	for i := range l.list {
		if !l.list[i].quoted && l.list[i].name == name {
			return l.list[i].value
		}
	}
	l.fail(malformed("field %s= is missing", name))
	return ""
}

func (l *lineFields) number(name string, highest uint64) uint64 {
	return l.parsed(name, l.value(name), highest)
}

func (l *lineFields) parsed(name, text string, highest uint64) uint64 {
	v, err := strconv.ParseUint(text, 0, 64)
	if err != nil || v > highest {
		l.fail(malformed("field %s is %q, not a number up to %d", name, firstOf(text), highest))
	}
	return v
}

func (l *lineFields) hex(name string) []byte {
	b, err := hex.DecodeString(l.value(name))
	if err != nil {
		l.fail(malformed("field %s is not in base 16", name))
	}
	return b
}

// raw returns the bytes that a line has in place of those that its fields describe.
func (l *lineFields) raw() (raw []byte, is bool) {
	if !l.has("raw") {
		return nil, false
	}
	return l.hex("raw"), true
}
