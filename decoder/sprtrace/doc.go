// Package sprtrace reads the binary traces of sp-rtrace: wire versions 1.0 to
// 2.0 and the dialect that the protocol document describes, in either byte
// order and with pointers of four or eight bytes. It finds out by itself which
// of these a trace is. docs/formats/sprtrace.md describes the format and how.
//
// [Reader] delivers records, [Walker] packets; [Dump] and [Undump] convert to
// and from a text that holds every byte of a trace.
package sprtrace

import (
	"errors"
	"fmt"

	wire "rtrace-bpf/internal/wire/sprtrace"
	"rtrace-bpf/trace"
)

// DefaultMaxPacket is the limit of a packet's data unless Options sets another.
// Real writers keep a packet within 4096 bytes.
const DefaultMaxPacket = 16 << 20

// Options says how to read. The zero value reads as much as possible.
type Options struct {
	// Strict makes everything that no writer of the detected dialect sends
	// an error: unknown packets, packets that do not parse or have bytes
	// left, ARGS and BTRC without a call, a second handshake.
	Strict bool
	// Legacy reads as the last original post-processor does: nothing is
	// detected, an unknown packet or a second handshake ends the trace, a
	// cut packet is dropped without an error, and its misreadings are kept.
	// See Reader.Warnings for what it would have printed.
	Legacy bool
	// Skim leaves out calls with their stacks and arguments, which are not
	// parsed then. It is not for Strict and Legacy.
	Skim bool
	// MaxPacket limits the data of one packet in bytes; 0 means
	// DefaultMaxPacket.
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
