// Package dotnet talks to the diagnostics server that is in every process of .NET
// since version 3: it tells of the process, streams its events as nettrace, and
// makes it write a perf map. The protocol is Microsoft's "Diagnostic IPC Protocol"
// (documentation of dotnet/diagnostics): one command a connection over a socket
// in the temporary folder of the process.
//
// What comes over a socket is the process's, and not trusted: lengths are
// bounded, and nobody waits for an answer longer than asked for.
package dotnet

import (
	"errors"
	"fmt"
)

// Why a process cannot be asked.
var (
	// ErrNoServer says that there is no socket: the process is none of .NET, has
	// not started its runtime yet, or has its diagnostics switched off.
	ErrNoServer = errors.New("no diagnostics server of .NET")
	// ErrProtocol says that the other end does not speak the protocol.
	ErrProtocol = errors.New("no answer of a diagnostics server of .NET")
)

// Error is what a server answers to a command that it does not carry out.
type Error struct {
	Code uint32 // HRESULT
}

// The codes that servers answer with.
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
	CodeBadEncoding:    "it does not understand the command's payload",
	CodeUnknownCommand: "it does not know the command",
	CodeUnknownMagic:   "it speaks another version of the protocol",
	CodeUnknownError:   "unknown error",
	CodeFail:           "failed; it takes 64 sessions at a time",
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

// unknownCommand says that a server is too old for a command.
func unknownCommand(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == CodeUnknownCommand
}
