//go:build !unix || solaris || aix

package flock

import (
	"errors"
	"os"
)

// Shared is not there: steps run on Linux.
func Shared(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// Alone is not there either: elsewhere nothing is known of other processes.
func Alone(string) (*os.File, error) { return nil, errors.ErrUnsupported }
