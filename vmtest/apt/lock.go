package apt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// lock waits until no other process changes the folder. apt does not wait for other instances
// by itself, and two downloads of the same file would get mixed up.
func (p *Private) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(p.dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("lock the private apt: %w", err)
	}
	locked := make(chan error, 1)
	go func() { locked <- lockFile(f) }()
	select {
	case err = <-locked:
	case <-ctx.Done():
		go func() { // its wait cannot be cancelled
			<-locked //nolint:errcheck // the result is not needed any more
			f.Close()
		}()
		return nil, ctx.Err()
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the private apt: %w", err)
	}
	return func() { f.Close() }, nil
}
