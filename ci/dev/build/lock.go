package build

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// Lock takes the exclusive lock of key, waiting for another process until ctx ends. The kernel
// releases it when its process ends, however it ends. The key's digest may be empty for a lock that
// stands for its name.
func (s *Store) Lock(ctx context.Context, key Key) (release func(), err error) {
	file := flock.New(filepath.Join(s.root, "locks", key.Name+"-"+key.Digest+".lock"))
	locked, err := file.TryLock()
	if err == nil && !locked {
		if s.Waiting != nil {
			s.Waiting()
		}
		if _, err = file.TryLockContext(ctx, 100*time.Millisecond); err != nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", key, err)
	}
	return func() { _ = file.Close() }, nil
}
