// Package cache says where Slipway's files in the user's cache are.
package cache

import (
	"os"
	"path/filepath"
)

// Dir is Slipway's directory in the user's cache, the one that make bundle and
// make engine use.
func Dir() (string, error) {
	if dir := os.Getenv("SLIPWAY_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "slipway"), err
}
