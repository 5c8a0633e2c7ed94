// Package sprtrace reads the binary traces of sp-rtrace: wire versions 1.0 to 2.0 and
// the dialect in the protocol document, in either byte order and with pointers of four
// or eight bytes. It detects which of these a trace is. docs/formats/sprtrace.md
// describes the format and the detection.
//
// [Reader] returns records, [Walker] packets. [Dump] and [Undump] convert to and from a
// text that holds every byte of a trace.
package sprtrace

import (
	"errors"
	"fmt"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// DefaultMaxPacket is the limit of a packet's data in bytes unless Options sets
// another. Real writers keep packets within 4096 bytes.
const DefaultMaxPacket = 16 << 20

// Options are the options for reading. The zero value reads as much as possible.
type Options struct {
	// Strict makes an error of everything that no writer of the detected dialect sends:
	// unknown packets, packets that do not parse or have extra bytes, ARGS and BTRC
	// without a call, a second handshake.
	Strict bool
	// Legacy reads as the last original post-processor does. Nothing is detected, an
	// unknown packet or a second handshake ends the trace, a cut packet is dropped
	// without an error, and the misreadings are the same. Reader.Warnings returns what
	// it would have printed.
	Legacy bool
	// Skim leaves out calls with their stacks and arguments, and does not parse them.
	// Do not use it with Strict or Legacy.
	Skim bool
	// MaxPacket limits the data of one packet in bytes; 0 means DefaultMaxPacket.
	MaxPacket int
}

func (o *Options) check() error {
	if o.Strict && o.Legacy {
		return errors.New("sp-rtrace: strict and legacy reading exclude each other")
	}
	if o.Skim && (o.Strict || o.Legacy) {
		return errors.New("sp-rtrace: calls that are left out cannot be checked")
	}
	if o.MaxPacket < 0 || o.MaxPacket > 1<<30 {
		return fmt.Errorf("sp-rtrace: packet limit %d is not in 0 to 2^30", o.MaxPacket)
	}
	if o.MaxPacket == 0 {
		o.MaxPacket = DefaultMaxPacket
	}
	return nil
}

func syntaxError(offset int64, err error) error {
	return &trace.SyntaxError{Format: wire.Format, Offset: offset, Err: err}
}
