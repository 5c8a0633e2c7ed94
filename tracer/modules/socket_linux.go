package modules

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"

	"golang.org/x/sys/unix"
)

// addressOf parses the address that is passed to bind or connect: its family, its path, if it has
// one, and the rest as arguments.
func addressOf(c *call) (family, path string, args []argument) {
	data, ok := c.text(1)
	if !ok {
		return "", "", nil
	}
	if length := c.word(2) & 0xffffffff; uint64(len(data)) > length {
		data = data[:length]
	}
	b := []byte(data)
	if len(b) < 2 {
		return "", "", nil
	}
	rest := b[2:]
	switch number := binary.NativeEndian.Uint16(b); {
	case number == unix.AF_UNIX:
		path = unixPath(rest)
		return "AF_UNIX", path, []argument{fixed("path", path)}
	case number == unix.AF_INET && len(rest) >= 6:
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte(rest[2:6])), binary.BigEndian.Uint16(rest))
		return "AF_INET", "", []argument{fixed("address:port", at.String())}
	case number == unix.AF_INET6 && len(rest) >= 22:
		at := netip.AddrPortFrom(netip.AddrFrom16([16]byte(rest[6:22])), binary.BigEndian.Uint16(rest))
		return "AF_INET6", "", []argument{fixed("address:port", at.String())}
	case number == unix.AF_NETLINK && len(rest) >= 10:
		return "AF_NETLINK", "", []argument{
			fixed("pid", fmt.Sprint(binary.NativeEndian.Uint32(rest[2:]))),
			fixed("groups", fmt.Sprintf("0x%x", binary.NativeEndian.Uint32(rest[6:]))),
		}
	case number == unix.AF_PACKET && len(rest) >= 6:
		return "AF_PACKET", "", []argument{
			fixed("protocol", fmt.Sprintf("0x%x", binary.BigEndian.Uint16(rest))),
			fixed("ifindex", fmt.Sprint(int32(binary.NativeEndian.Uint32(rest[2:])))),
		}
	default:
		return fmt.Sprintf("0x%x", number), "", nil
	}
}

// unixPath returns the path of a socket. A name that begins with a NUL is not a file (unix(7)),
// and is written with an @, as in ss and netstat.
func unixPath(b []byte) string {
	if len(b) > 1 && b[0] == 0 {
		return "@" + strings.ReplaceAll(string(b[1:]), "\x00", "@")
	}
	path, _, _ := strings.Cut(string(b), "\x00")
	return path
}

// passed returns the descriptors in control messages (cmsg(3)).
func passed(b []byte, narrow bool) (fds []uint32) {
	word := 8
	if narrow {
		word = 4
	}
	head := word + 8
	for len(b) >= head {
		length := binary.NativeEndian.Uint64(append(append([]byte{}, b[:word]...), make([]byte, 8-word)...))
		if length < uint64(head) {
			break
		}
		end := min(length, uint64(len(b)))
		level, kind := binary.NativeEndian.Uint32(b[word:]), binary.NativeEndian.Uint32(b[word+4:])
		if level == unix.SOL_SOCKET && kind == unix.SCM_RIGHTS {
			for at := head; uint64(at)+4 <= end; at += 4 {
				fds = append(fds, binary.NativeEndian.Uint32(b[at:]))
			}
		}
		next := (length + uint64(word) - 1) &^ (uint64(word) - 1)
		if next > uint64(len(b)) {
			break
		}
		b = b[next:]
	}
	return fds
}
