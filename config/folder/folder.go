// Package folder finds the folders of a user: for configurations, and for what can be made again.
package folder

import (
	"os"
	"path/filepath"
)

// Env is the environment variable that overrides the system's folder for configurations.
const Env = "SLIPWAY_CONFIG_DIR"

// Default returns the path of the folder in Env, or else of slipway in the user's
// configuration directory (XDG_CONFIG_HOME or ~/.config on Linux, ~/Library/Application Support
// on macOS, %AppData% on Windows); empty for a user without a home directory. It need not exist.
func Default() (string, error) {
	if dir := os.Getenv(Env); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserConfigDir()
	switch {
	case err != nil && os.Getenv("XDG_CONFIG_HOME") == "":
		return "", nil
	case err != nil:
		return "", err
	}
	return filepath.Join(dir, "slipway"), nil
}

// Cache returns the path of Slipway's folder in the user's cache, which make bundle and make engine
// use, too.
func Cache() (string, error) {
	if dir := os.Getenv("SLIPWAY_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "slipway"), err
}
