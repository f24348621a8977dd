package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"golang.org/x/sys/unix"
)

// readAccount reads the account of a registry, a URL, from a file as docker's config.json. The
// account stays in memory only. Without a file there is none.
func readAccount(file, registry string) (authn.Authenticator, error) {
	if file == "" {
		return authn.Anonymous, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the registry's account: %w", err)
	}
	var config struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	if json.Unmarshal(text, &config) != nil { // whose error may quote it
		return nil, fmt.Errorf("read the registry's account: %s is no configuration of docker", file)
	}
	_, host, _ := strings.Cut(registry, "://")
	host, _, _ = strings.Cut(host, "/")
	found, ok := config.Auths[host]
	if !ok {
		return nil, fmt.Errorf("read the registry's account: %s has no account for %s", file, host)
	}
	return authn.FromConfig(found), nil
}

// takeAway keeps what runs in the container from reading a mounted file, which was read.
func takeAway(file string) error {
	err := unix.Unmount(file, unix.MNT_DETACH)
	if file == "" || err == nil || errors.Is(err, unix.EINVAL) { // it is no mount
		return nil
	}
	return fmt.Errorf("unmount %s: %w", file, err)
}
