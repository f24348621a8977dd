// Package secret stores secrets in a deployment's store, encrypted with age: those that
// steps share and that are not Kubernetes Secrets. Anyone who can read the store can
// see their names and approximate lengths.
package secret

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"filippo.io/age"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/store"
)

// CodeBadKey: the key of the deployment's secrets is not valid, another one encrypted them,
// or none was given for a store in a bucket.
const CodeBadKey fault.Code = "SEC-002"

// Keys, and the kind and version with which the encrypted records are sealed.
const (
	prefix  = "secrets/"
	suffix  = ".age"
	kind    = "secret"
	version = 1
)

// KeyFile is where in the store LocalKey stores a deployment's key.
const KeyFile = prefix + "identity"

// Key encrypts and decrypts secrets. It is an age identity.
type Key struct {
	identity  age.Identity
	recipient age.Recipient
}

// NewKey generates a key and returns it together with the text that ParseKey reads.
func NewKey() (*Key, redact.Value, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, redact.Value{}, fmt.Errorf("make a key: %w", err)
	}
	return &Key{id, id.Recipient()}, redact.New([]byte(id.String() + "\n")), nil
}

// ParseKey reads the file that age-keygen writes: one identity, and comments.
func ParseKey(text redact.Value) (*Key, error) {
	ids, err := age.ParseIdentities(bytes.NewReader(text.Reveal()))
	if err == nil && len(ids) != 1 {
		err = fmt.Errorf("it holds %d identities, want one", len(ids))
	} else if err != nil {
		err = errors.New("it is no identity of age") // age's error may quote it
	}
	if err != nil {
		return nil, unreadable(err)
	}
	switch id := ids[0].(type) {
	case *age.X25519Identity:
		return &Key{id, id.Recipient()}, nil
	case *age.HybridIdentity:
		return &Key{id, id.Recipient()}, nil
	}
	return nil, unreadable(fmt.Errorf("it is an identity of type %T", ids[0]))
}

// local is the part of a store that LocalKey needs.
type local interface {
	Get(ctx context.Context, key string) ([]byte, error)
	Create(ctx context.Context, key string, data []byte) error
}

// LocalKey returns the key that is stored in s itself, generating it if there is none;
// concurrent callers get the same key. s must not be a bucket. Such a key only protects
// secrets that are copied out of the store.
func LocalKey(ctx context.Context, s local) (*Key, error) {
	text, err := s.Get(ctx, KeyFile)
	if err == nil {
		return ParseKey(redact.New(text))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, value, err := NewKey()
	if err != nil {
		return nil, err
	}
	err = s.Create(ctx, KeyFile, value.Reveal())
	if errors.Is(err, store.ErrExists) {
		return LocalKey(ctx, s)
	}
	return key, err
}

// Vault holds secrets by name in a store. It is safe for concurrent use.
type Vault struct {
	store store.Values
	key   *Key
}

// Open returns the vault in s. It does not access s.
func Open(s store.Values, key *Key) *Vault { return &Vault{s, key} }

// record is the plaintext of a secret. age detects that a secret is incomplete, and the
// name that it was swapped with another.
type record struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

func versionsOf(name string) store.Versions {
	return store.Versions{Prefix: prefix + name + "/", Suffix: suffix}
}

// Remove removes a secret under the deployment's lock of a generation.
func Remove(ctx context.Context, s store.Values, generation int64, name string) error {
	return versionsOf(name).Remove(ctx, s, generation)
}

// Put creates or replaces a secret under the deployment's lock of a generation.
func (v *Vault) Put(ctx context.Context, generation int64, name string, value redact.Value) error {
	data, err := v.Encrypt(name, value.Reveal())
	if err != nil {
		return err
	}
	return versionsOf(name).Put(ctx, v.store, generation, data)
}

// Encrypt encrypts what is stored elsewhere, under a name that Decrypt must be given.
func (v *Vault) Encrypt(name string, value []byte) ([]byte, error) {
	plain, err := store.Seal(kind, version, record{name, value})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w, err := age.Encrypt(&out, v.key.recipient)
	if err == nil {
		_, err = w.Write(plain)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("encrypt secret %s: %w", name, err)
	}
	return out.Bytes(), nil
}

// Get returns a secret. The error is fs.ErrNotExist if there is none.
func (v *Vault) Get(ctx context.Context, name string) (redact.Value, error) {
	data, _, err := versionsOf(name).Newest(ctx, v.store)
	if err != nil {
		return redact.Value{}, err
	}
	value, err := v.Decrypt(name, data)
	return redact.New(value), err
}

// Decrypt returns what Encrypt has encrypted under a name.
func (v *Vault) Decrypt(name string, data []byte) ([]byte, error) {
	r, err := age.Decrypt(bytes.NewReader(data), v.key.identity)
	if _, other := errors.AsType[*age.NoIdentityMatchError](err); other {
		return nil, &fault.Fault{Code: CodeBadKey, Class: fault.Preflight, Op: "decrypt secret " + name,
			Err: errors.New("it was encrypted with another key"),
			Fix: "use the key that the deployment was installed with: " + giveKey}
	} else if err != nil {
		return nil, damaged(name, err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, damaged(name, err)
	}
	var rec record
	if err := store.Unseal(plain, kind, version, &rec); err != nil {
		return nil, damaged(name, err)
	}
	if rec.Name != name {
		return nil, damaged(name, fmt.Errorf("it is secret %s", rec.Name))
	}
	return rec.Value, nil
}

// Names returns the names of the secrets in the vault, sorted.
func (v *Vault) Names(ctx context.Context) ([]string, error) {
	keys, err := v.store.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, k := range keys {
		if _, is := store.Generation(k); is && strings.HasSuffix(k, suffix) {
			names = append(names, path.Dir(strings.TrimPrefix(k, prefix)))
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Check returns an error if the vault's key cannot decrypt the first secret in it.
func (v *Vault) Check(ctx context.Context) error {
	names, err := v.Names(ctx)
	if err != nil || len(names) == 0 {
		return err
	}
	_, err = v.Get(ctx, names[0])
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was removed meanwhile
	}
	return err
}

// Missing returns the fault for a key that was not given; err is why one is needed, and
// used whether there are secrets that it encrypted.
func Missing(err error, used bool) error {
	if used {
		return badKey(err, "give the key that the deployment was installed with: "+giveKey+"; docs/state.md says how to copy it from the engine; if it is lost for good, nothing reads these secrets any more, and slipway destroy removes the deployment, all its data included, so that it can be installed anew")
	}
	return badKey(err, "make one with age-keygen, keep it, and "+giveKey)
}

func unreadable(err error) error {
	return badKey(err, "give the file that age-keygen wrote when the deployment was first installed: "+giveKey)
}

func badKey(err error, fix string) error {
	return &fault.Fault{Code: CodeBadKey, Class: fault.Usage, Op: "read the key of the deployment's secrets", Err: err, Fix: fix}
}

// giveKey is the part of a remedy that explains how to pass the key to a run.
const giveKey = "name it in the configuration: state: {key: \"env:NAME\"} or \"file:PATH\""

func damaged(name string, err error) error {
	return &fault.Fault{Code: store.CodeDamaged, Class: fault.Step, Op: "decrypt secret " + name, Err: err,
		Fix: "remove all below " + prefix + name + "/ from the store; the step that made it makes it again: slipway install"}
}
