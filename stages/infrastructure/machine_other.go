//go:build !linux

package infrastructure

import "errors"

// Steps run in Linux containers; elsewhere the program only drives them.

func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }

func netfilter(string) bool { return false }
