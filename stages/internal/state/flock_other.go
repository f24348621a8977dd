//go:build !unix || solaris || aix

package state

import (
	"errors"
	"os"
)

// Steps run on Linux; elsewhere nothing is known of other processes.
func alone(string) (*os.File, error)  { return nil, errors.ErrUnsupported }
func shared(string) (*os.File, error) { return nil, errors.ErrUnsupported }
