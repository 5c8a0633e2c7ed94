package selection

import (
	"fmt"
	"os/user"
	"strconv"
)

// userIDs returns the IDs of users that are given by name or number. Names are looked up in
// /etc/passwd.
func userIDs(names []string) ([]uint32, error) {
	var ids []uint32
	for _, name := range names {
		text := name
		if _, err := strconv.ParseUint(name, 10, 32); err != nil {
			u, err := user.Lookup(name)
			if err != nil {
				return nil, fmt.Errorf("unknown user %q: etc/etc/passwd", name)
			}
			text = u.Uid
		}
		id, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("number of user %q: %w", name, err)
		}
		ids = append(ids, uint32(id))
	}
	return ids, nil
}
