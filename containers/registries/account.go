// Package registries has what requests to container registries share: the account with which the
// nodes of a cluster pull (that of `docker login`, or one in a file as docker's config.json), and
// what keeps requests from going out without TLS.
package registries

import (
	"bytes"
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/docker/cli/cli/config"
	"github.com/docker/cli/cli/config/configfile"
	"github.com/docker/cli/cli/config/credentials"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
)

// CodeAccount: the account of a registry cannot be read, or nodes cannot use it.
const CodeAccount fault.Code = "REG-016"

// Account is an account of a registry. It is printed as "***".
type Account struct {
	host string
	auth *authn.AuthConfig
}

// String hides it.
func (Account) String() string { return "***" }

// GoString hides it from %#v.
func (Account) GoString() string { return "***" }

// Find is the account for the first of hosts, host[:port], that has one, as an account of the
// first of them: the others are the same registry under other names. file is a docker
// config.json; without one it is what `docker login` wrote. It is nil where none of them has an
// account, and fails with CodeAccount.
func Find(ctx context.Context, file string, hosts ...string) (*Account, error) {
	keychain := authn.Keychain(authn.DefaultKeychain)
	if file != "" {
		var err error
		if keychain, err = read(file); err != nil {
			return nil, unreadable("read the registry's account in "+file, "give a file as docker's config.json", err)
		}
	}
	for _, host := range hosts {
		at, err := name.NewRegistry(host)
		if err != nil {
			return nil, err
		}
		var auth *authn.AuthConfig
		found, err := authn.Resolve(ctx, keychain, at)
		if err == nil {
			auth, err = authn.Authorization(ctx, found)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, unreadable("read the account of "+host, "log in again (docker login "+fault.Quote(host)+"), or give a file as docker's config.json with the account, or with {} for none: --registry-auth FILE",
				errors.New(redact.External(err.Error()))) // it quotes a program that knows passwords
		}
		if *auth != (authn.AuthConfig{}) {
			return &Account{host: hosts[0], auth: auth}, nil
		}
	}
	return nil, nil
}

func unreadable(op, fix string, err error) error {
	return &fault.Fault{Code: CodeAccount, Class: fault.Preflight, Op: op, Err: err, Fix: fix}
}

type file struct{ *configfile.ConfigFile }

func read(path string) (authn.Keychain, error) {
	text, err := bounded.File(path, bounded.Written)
	if err != nil {
		return nil, err
	}
	c, err := config.LoadFromReader(bytes.NewReader(text))
	if err != nil {
		return nil, errors.New("it is no configuration of docker") // what is wrong with it may quote it
	}
	return file{c}, nil
}

// Resolve is the account for a registry. GetAuthConfig would prefer one in DOCKER_AUTH_CONFIG.
func (f file) Resolve(at authn.Resource) (authn.Authenticator, error) {
	key := at.RegistryStr()
	if key == name.DefaultRegistry {
		key = authn.DefaultAuthKey
	}
	store := credentials.NewFileStore(f.ConfigFile)
	program, own := f.CredentialHelpers[key]
	if !own {
		program = f.CredentialsStore
	}
	if program != "" {
		store = credentials.NewNativeStore(f.ConfigFile, program)
	}
	a, err := store.Get(key)
	if err != nil {
		return nil, err
	}
	return authn.FromConfig(authn.AuthConfig{Username: a.Username, Password: a.Password, IdentityToken: a.IdentityToken, RegistryToken: a.RegistryToken}), nil
}

// Config is a docker config.json with this account and no other.
func (a *Account) Config() (redact.Value, error) {
	text, err := json.Marshal(map[string]any{"auths": map[string]authn.AuthConfig{a.host: *a.auth}})
	return redact.New(text), err
}

// ForKubelet fails with CodeAccount unless a kubelet can pull with the account, which knows
// passwords only.
func (a *Account) ForKubelet() error {
	if a.auth.Password != "" {
		return nil
	}
	return unreadable("let the cluster's nodes pull from "+a.host, "log in with a password, or a token in its place (docker login --username USER "+fault.Quote(a.host)+"); where the nodes have an account of their own, give a file with {} for none: --registry-auth FILE",
		errors.New("the account is a token of docker login that is renewed, which a kubelet cannot do"))
}

// rounds make guessing a password from a digest slow: a tenth of a second for each.
const rounds = 200_000

// Digest tells accounts apart, "pbkdf2:<hex>", and nothing of them.
func (a *Account) Digest() (string, error) {
	key, err := pbkdf2.Key(sha256.New, fmt.Sprintf("%q", []string{a.auth.Username, a.auth.Password, a.auth.IdentityToken, a.auth.RegistryToken}), []byte("slipway "+a.host), rounds, 16)
	return "pbkdf2:" + hex.EncodeToString(key), err
}
