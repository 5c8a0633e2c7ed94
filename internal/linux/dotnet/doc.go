// Package dotnet is a client of the diagnostics server that every .NET process has since
// version 3. The server reports information about the process, streams its events as nettrace,
// and makes it write a perf map. The protocol is Microsoft's "Diagnostic IPC Protocol"
// (documentation of dotnet/diagnostics): one command per connection over a socket in the
// temporary folder of the process.
//
// The process controls what comes over the socket, so it is not trusted: lengths are bounded,
// and every wait has a timeout.
package dotnet

import (
	"errors"
	"fmt"
)

// Why a process has no usable server.
var (
	// ErrNoServer reports that there is no socket: the process is not a .NET process, has not
	// started its runtime yet, or has its diagnostics switched off.
	ErrNoServer = errors.New("no diagnostics server of .NET")
	// ErrProtocol reports that the other end does not follow the protocol.
	ErrProtocol = errors.New("not the answer of a diagnostics server of .NET")
)

// Error is the answer of a server that did not execute a command.
type Error struct {
	Code uint32 // HRESULT
}

// The codes in such answers.
const (
	CodeBadEncoding    = 0x80131384
	CodeUnknownCommand = 0x80131385
	CodeUnknownMagic   = 0x80131386
	CodeUnknownError   = 0x80131387
	CodeFail           = 0x80004005 // also for more than 64 sessions
	CodeAccess         = 0x80070005
	CodeInvalid        = 0x80070057
	CodeNotSupported   = 0x80131515
)

var codeTexts = map[uint32]string{
	CodeBadEncoding:    "cannot read the command's payload",
	CodeUnknownCommand: "unknown command",
	CodeUnknownMagic:   "unsupported version of the protocol",
	CodeUnknownError:   "unknown error",
	CodeFail:           "failed; at most 64 sessions are possible at a time",
	CodeAccess:         "access denied",
	CodeInvalid:        "invalid argument",
	CodeNotSupported:   "not supported",
}

func (e *Error) Error() string {
	if text := codeTexts[e.Code]; text != "" {
		return fmt.Sprintf("%s (0x%08x)", text, e.Code)
	}
	return fmt.Sprintf("error 0x%08x", e.Code)
}

// unknownCommand reports whether an error means that a server is too old for a command.
func unknownCommand(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == CodeUnknownCommand
}
