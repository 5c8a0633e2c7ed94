package dotnet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf16"
)

// magic begins each message.
const magic = "DOTNET_IPC_V1\x00"

// headSize is the size of a message without its payload, in bytes: magic, size of the message,
// command set and command, two bytes that are 0.
const headSize = len(magic) + 6

// maxMessage is the most bytes that a message can have.
const maxMessage = 1<<16 - 1

// command is a command set in the high byte and a command in the low one.
type command uint16

const (
	cmdStopTracing     command = 0x0201
	cmdCollectTracing  command = 0x0202
	cmdCollectTracing2 command = 0x0203
	cmdCollectTracing3 command = 0x0204
	cmdCollectTracing4 command = 0x0205
	cmdProcessInfo     command = 0x0400
	cmdProcessInfo2    command = 0x0404
	cmdEnablePerfMap   command = 0x0405
	cmdDisablePerfMap  command = 0x0406
	cmdProcessInfo3    command = 0x0408
	answerOK           command = 0xff00
	answerError        command = 0xffff
)

// appendMessage appends a message to dst.
func appendMessage(dst []byte, cmd command, payload []byte) ([]byte, error) {
	size := headSize + len(payload)
	if size > maxMessage {
		return dst, fmt.Errorf("a command of %d bytes is too long for the protocol", size)
	}
	dst = append(dst, magic...)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(size))
	dst = append(dst, byte(cmd>>8), byte(cmd), 0, 0)
	return append(dst, payload...), nil
}

// readAnswer reads the payload of an answer. An error from the server is an *Error.
func readAnswer(r io.Reader) ([]byte, error) {
	head := make([]byte, headSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, noAnswer(err)
	}
	size := int(binary.LittleEndian.Uint16(head[len(magic):]))
	answer := command(head[len(magic)+2])<<8 | command(head[len(magic)+3])
	if !bytes.HasPrefix(head, []byte(magic)) || size < headSize || answer != answerOK && answer != answerError {
		return nil, fmt.Errorf("%w: % x", ErrProtocol, head)
	}
	payload := make([]byte, size-headSize)
	if _, err := io.ReadFull(r, payload); err != nil {
		return nil, noAnswer(err)
	}
	if answer == answerError {
		if len(payload) < 4 {
			return nil, fmt.Errorf("%w: an error of %d bytes", ErrProtocol, len(payload))
		}
		return nil, &Error{binary.LittleEndian.Uint32(payload)}
	}
	return payload, nil
}

// noAnswer converts the error of an answer that ends early to ErrProtocol. It returns other
// errors unchanged.
func noAnswer(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("%w: the connection was closed", ErrProtocol)
	}
	return err
}

// appendString appends a string: the number of UTF-16 units with the NUL, and the units. An
// empty string has only the number.
func appendString(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, 0, 0, 0, 0)
	}
	units := append(utf16.Encode([]rune(s)), 0)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(units)))
	for _, u := range units {
		dst = binary.LittleEndian.AppendUint16(dst, u)
	}
	return dst
}

// answer reads fields from a payload. After the first error all values are zero.
type answer struct {
	data []byte
	bad  bool
}

func (a *answer) bytes(n int) []byte {
	if a.bad || n > len(a.data) {
		a.bad = true
		return nil
	}
	b := a.data[:n]
	a.data = a.data[n:]
	return b
}

func (a *answer) u32() uint32 {
	if b := a.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (a *answer) u64() uint64 {
	if b := a.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (a *answer) text() string {
	n := a.u32()
	if uint64(n)*2 > uint64(len(a.data)) {
		a.bad = true
		return ""
	}
	b := a.bytes(int(n) * 2)
	var units []uint16
	for i := 0; i < len(b); i += 2 {
		units = append(units, binary.LittleEndian.Uint16(b[i:]))
	}
	if len(units) > 0 && units[len(units)-1] == 0 {
		units = units[:len(units)-1]
	}
	return string(utf16.Decode(units))
}
