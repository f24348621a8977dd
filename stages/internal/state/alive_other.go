//go:build !unix || solaris || aix

package state

import (
	"errors"
	"os"
)

// Steps run on Linux. Elsewhere nothing is known of other processes.
func shared(string) (*os.File, error) { return nil, errors.ErrUnsupported }
func alone(string) (*os.File, error)  { return nil, errors.ErrUnsupported }
