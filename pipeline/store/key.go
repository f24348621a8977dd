package store

import (
	"fmt"
	"regexp"

	"github.com/slipway-sh/slipway/bounded"
)

// The longest key, and the longest part of one between slashes.
const (
	maxKey  = 512
	maxPart = 200
)

var (
	keyRE  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.@=+-]*(/[A-Za-z0-9_][A-Za-z0-9_.@=+-]*)*$`)
	longRE = regexp.MustCompile(fmt.Sprintf(`[^/]{%d}`, maxPart+1))
)

// checkKey rejects keys that are not valid in every kind of store. No part of a key may
// begin with a dot, which excludes ".." and leaves such names for unfinished files.
func checkKey(key string) error {
	if len(key) > maxKey || !keyRE.MatchString(key) || longRE.MatchString(key) {
		return fmt.Errorf("%.600q is not a valid key: keys are letters, digits and _.@=+- in parts between slashes, none of which begins with a dot or is longer than %d", key, maxPart)
	}
	return nil
}

func checkSize(key string, data []byte) error {
	if len(data) > MaxBytes {
		return bounded.TooLarge(key, MaxBytes)
	}
	return nil
}
