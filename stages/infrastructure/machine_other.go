//go:build !linux

package infrastructure

import "errors"

// freeSpace fails: steps run in Linux containers.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
