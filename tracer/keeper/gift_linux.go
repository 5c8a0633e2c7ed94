package keeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// gift counts the descriptors that are handed over.
type gift struct{ programs, files uint32 }

// giftSize is the size of a gift in bytes. Each message with descriptors contains one.
const giftSize = 8

// maxDescriptors is the most descriptors in a message (SCM_MAX_FD).
const maxDescriptors = 253

// give sends descriptors, starting with those of programs.
func give(to *os.File, g gift, fds []int) error {
	var head [giftSize]byte
	binary.NativeEndian.PutUint32(head[:], g.programs)
	binary.NativeEndian.PutUint32(head[4:], g.files)
	for first := true; first || len(fds) > 0; first = false {
		n := min(len(fds), maxDescriptors)
		if err := unix.Sendmsg(int(to.Fd()), head[:], unix.UnixRights(fds[:n]...), nil, unix.MSG_NOSIGNAL); err != nil {
			return err
		}
		fds = fds[n:]
	}
	return nil
}

// take receives what give sends.
func take(from *os.File) (programs, files []int, err error) {
	var head [giftSize]byte
	rights := make([]byte, unix.CmsgSpace(maxDescriptors*4))
	var fds []int
	for {
		n, size, flags, _, err := unix.Recvmsg(int(from.Fd()), head[:], rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_WAITALL)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("receive descriptors: %w", err)
		case n < giftSize:
			return nil, nil, io.EOF // the tracer has ended
		case flags&unix.MSG_CTRUNC != 0:
			return nil, nil, fmt.Errorf("receive descriptors: %w", unix.EMFILE)
		}
		messages, err := unix.ParseSocketControlMessage(rights[:size])
		if err != nil {
			return nil, nil, fmt.Errorf("receive descriptors: %w", err)
		}
		for i := range messages {
			more, err := unix.ParseUnixRights(&messages[i])
			if err != nil {
				return nil, nil, fmt.Errorf("receive descriptors: %w", err)
			}
			fds = append(fds, more...)
		}
		count := int(binary.NativeEndian.Uint32(head[:]))
		all := count + int(binary.NativeEndian.Uint32(head[4:]))
		if len(fds) >= all {
			return fds[:count], fds[count:], nil
		}
	}
}
