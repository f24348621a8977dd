package secrets

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/cli/internal/usage"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/providers"
)

// Kubeconfig is what containers get of the access to an existing cluster. It
// is read from where the configuration says each time, and written nowhere.
func (f *Flags) Kubeconfig(ctx context.Context, access providers.Access, from Source) (*dagger.Secret, error) {
	secret, err := from.Find(ctx, access.Kubeconfig)
	var text string
	if err == nil {
		text, err = secret.Plaintext(ctx)
	}
	if err != nil {
		return nil, noKubeconfig(err)
	}
	extracted, err := kubeconfig.Extract([]byte(text), access.Context, f.beside(access.Kubeconfig))
	if err != nil {
		return nil, err
	}
	return from.Set("kubeconfig", string(extracted)), nil
}

// CheckKubeconfig finds what is wrong with the access to an existing cluster,
// where it can be read without asking anybody.
func (f *Flags) CheckKubeconfig(access providers.Access) error {
	if name, err := pathOf(access.Kubeconfig); err == nil && name != "" && !usage.InModule() {
		_, missing := os.Stat(name)
		switch err := readable(access.Kubeconfig); {
		case missing == nil && err != nil:
			return noKubeconfig(err)
		case missing != nil && strings.ContainsAny(strings.TrimPrefix(name, filepath.VolumeName(name)), "$:"):
			return noKubeconfig(fmt.Errorf("%w; it is one path, in which no variables are replaced", missing))
		} // what is missing may be on another machine
	}
	text, err := f.AtHand(access.Kubeconfig)
	if text == nil || err != nil {
		return err
	}
	_, err = kubeconfig.Extract(text, access.Context, f.beside(access.Kubeconfig))
	return err
}

func noKubeconfig(err error) error { return Missing("find the kubeconfig of the cluster", err) }

// beside reads the files that a kubeconfig names, as kubectl does: a relative path is from
// the kubeconfig's own directory. It is nil for one that is no file.
func (f *Flags) beside(ref config.SecretRef) func(string) ([]byte, error) {
	own, err := pathOf(ref)
	if err != nil || own == "" {
		return nil
	}
	if f.Brought { // the sender may have brought the kubeconfig as well, with a server of theirs that gets the token
		return func(string) ([]byte, error) {
			return nil, errors.New("it is read only if --package-key verifies the author of the package that names the kubeconfig")
		}
	}
	return func(name string) ([]byte, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(filepath.Dir(own), name)
		}
		return bounded.File(name, bounded.Written)
	}
}
