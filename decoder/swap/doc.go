// Package swap reads SWAP data messages: all layouts of public writers and of both
// texts of the protocol, with times in either order. docs/formats/swap.md describes the
// format.
//
// [Scanner] returns the messages as they are in the file, [Parser] parses them into
// [Fields], and [Reader] makes records of them.
package swap

import (
	"fmt"

	wire "rtrace-bpf/internal/wire/swap"
	"rtrace-bpf/trace"
)

// Options are the options for reading. The zero value reads as much as possible.
type Options struct {
	// Strict makes an error of a message that is unknown or does not parse.
	Strict bool
	// MaxMessage limits a payload in bytes; 0 means 16 MiB.
	MaxMessage int
	// CPUs and Devices are the numbers of elements in the lists of SYSTEM. 0 means that
	// the number is derived from each message, or for devices that of real daemons.
	CPUs, Devices int
	// APIs names functions by their numbers, in place of the known names.
	APIs map[uint32]string
}

const (
	maxCPUs    = 1 << 16
	maxPayload = 1 << 30
)

func (o *Options) check() error {
	switch {
	case o.MaxMessage < 0 || o.MaxMessage > maxPayload:
		return fmt.Errorf("swap: message limit %d is not in 0 to 2^30", o.MaxMessage)
	case o.CPUs < 0 || o.CPUs > maxCPUs || o.Devices < 0 || o.Devices > maxCPUs:
		return fmt.Errorf("swap: %d processors or %d devices are not in 0 to %d", o.CPUs, o.Devices, maxCPUs)
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = wire.MaxMessage
	}
	return nil
}

func syntaxError(offset int64, err error) error {
	return &trace.SyntaxError{Format: wire.Format, Offset: offset, Err: err}
}

func malformed(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, trace.ErrMalformed)...)
}
