//go:build !unix

package main

import "errors"

// shields tells whether this system has process groups.
const shields = false

// become is not there.
func become(string, []string) error { return errors.ErrUnsupported }
