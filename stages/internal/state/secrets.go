package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	access "github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// Secrets calls hide with every secret that a container has for the deployment: the
// credentials of the bucket, the key of its secrets, and the administrator's access to the
// cluster. What is not there yet is passed over; the error says what cannot be read.
func (p Backend) Secrets(hide func(string)) error {
	for _, name := range store.SecretVariables() {
		hide(os.Getenv(name))
	}
	var errs []error
	for _, f := range []struct {
		name string
		each func(text []byte, hide func(string))
	}{
		{p.KeyFile, identities},
		{filepath.Join(p.Volume, filepath.FromSlash(store.VaultKeyFile)), identities},
		{p.CredentialsFile, credentials},
		{p.kubeconfigFile(), access.Secrets},
	} {
		if f.name == "" {
			continue
		}
		text, err := os.ReadFile(f.name)
		switch {
		case err == nil:
			f.each(text, hide)
		case !errors.Is(err, fs.ErrNotExist):
			errs = append(errs, fmt.Errorf("read a secret of the deployment: %w", err))
		}
	}
	return errors.Join(errs...)
}

// identities hides the lines of a file of age identities, but for its comments.
func identities(text []byte, hide func(string)) {
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			hide(line)
		}
	}
}

// credentials hides what is secret in the file that GOOGLE_APPLICATION_CREDENTIALS names;
// all of it if it is none.
func credentials(text []byte, hide func(string)) {
	var file map[string]any
	if json.Unmarshal(text, &file) != nil {
		hide(string(text))
		return
	}
	for _, field := range []string{"private_key", "private_key_id", "client_secret", "refresh_token"} {
		if value, ok := file[field].(string); ok {
			hide(value)
		}
	}
}
