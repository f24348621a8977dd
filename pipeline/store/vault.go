package store

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
)

// CodeBadKey: the key of the deployment's secrets is not valid, another one encrypted them,
// or none was given for a store in a bucket.
const CodeBadKey fault.Code = "SEC-002"

// Keys, and the kind and version with which the encrypted records are sealed.
const (
	secretPrefix  = "secrets/"
	secretSuffix  = ".age"
	secretKind    = "secret"
	secretVersion = 1
)

// VaultKeyFile is where in the store LocalVaultKey stores a deployment's key.
const VaultKeyFile = secretPrefix + "identity"

// VaultKey encrypts and decrypts secrets. It is an age identity.
type VaultKey struct {
	identity  age.Identity
	recipient age.Recipient
}

// NewVaultKey generates a key and returns it together with the text that ParseVaultKey reads.
func NewVaultKey() (*VaultKey, redact.Value, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return nil, redact.Value{}, fmt.Errorf("make a key: %w", err)
	}
	return &VaultKey{id, id.Recipient()}, redact.New([]byte(id.String() + "\n")), nil
}

// ParseVaultKey reads the file that age-keygen writes: one identity, and comments.
func ParseVaultKey(text redact.Value) (*VaultKey, error) {
	ids, err := age.ParseIdentities(bytes.NewReader(text.Reveal()))
	if err == nil && len(ids) != 1 {
		err = fmt.Errorf("it holds %d identities, want one", len(ids))
	} else if err != nil {
		err = errors.New("it is no identity of age") // age's error may quote it
	}
	if err != nil {
		return nil, badIdentity(err)
	}
	switch id := ids[0].(type) {
	case *age.X25519Identity:
		return &VaultKey{id, id.Recipient()}, nil
	case *age.HybridIdentity:
		return &VaultKey{id, id.Recipient()}, nil
	}
	return nil, badIdentity(fmt.Errorf("it is an identity of type %T", ids[0]))
}

// LocalVaultKey returns the key that is stored in s itself, generating it if there is none;
// concurrent callers get the same key. s must not be a bucket. Such a key only protects
// secrets that are copied out of the store.
func LocalVaultKey(ctx context.Context, s *Store) (*VaultKey, error) {
	text, err := s.Get(ctx, VaultKeyFile)
	if err == nil {
		return ParseVaultKey(redact.New(text))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	key, value, err := NewVaultKey()
	if err != nil {
		return nil, err
	}
	err = s.Create(ctx, VaultKeyFile, value.Reveal())
	if errors.Is(err, ErrExists) {
		return LocalVaultKey(ctx, s)
	}
	return key, err
}

// Vault holds secrets by name in a deployment's store, encrypted with age: those that steps share and that
// are not Kubernetes Secrets. Anyone who can read the store can see their names and approximate lengths. It
// is safe for concurrent use.
type Vault struct {
	store Values
	key   *VaultKey
}

// OpenVault returns the vault in s. It does not access s.
func OpenVault(s Values, key *VaultKey) *Vault { return &Vault{s, key} }

// secretRecord is the plaintext of a secret. age detects that a secret is incomplete, and the
// name that it was swapped with another.
type secretRecord struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

func versionsOfSecret(name string) Versions {
	return Versions{Prefix: secretPrefix + name + "/", Suffix: secretSuffix}
}

// RemoveSecret removes a secret under the deployment's lock of a generation.
func RemoveSecret(ctx context.Context, s Values, generation int64, name string) error {
	return versionsOfSecret(name).Remove(ctx, s, generation)
}

// Put creates or replaces a secret under the deployment's lock of a generation.
func (v *Vault) Put(ctx context.Context, generation int64, name string, value redact.Value) error {
	data, err := v.Encrypt(name, value.Reveal())
	if err != nil {
		return err
	}
	return versionsOfSecret(name).Put(ctx, v.store, generation, data)
}

// Encrypt encrypts what is stored elsewhere, under a name that Decrypt must be given.
func (v *Vault) Encrypt(name string, value []byte) ([]byte, error) {
	plain, err := Seal(secretKind, secretVersion, secretRecord{name, value})
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
	data, _, err := versionsOfSecret(name).Newest(ctx, v.store)
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
		return nil, damagedSecret(name, err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, damagedSecret(name, err)
	}
	var rec secretRecord
	if err := Unseal(plain, secretKind, secretVersion, &rec); err != nil {
		return nil, damagedSecret(name, err)
	}
	if rec.Name != name {
		return nil, damagedSecret(name, fmt.Errorf("it is secret %s", rec.Name))
	}
	return rec.Value, nil
}

// Names returns the names of the secrets in the vault, sorted.
func (v *Vault) Names(ctx context.Context) ([]string, error) {
	keys, err := v.store.List(ctx, secretPrefix)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, k := range keys {
		if _, is := Generation(k); is && strings.HasSuffix(k, secretSuffix) {
			names = append(names, path.Dir(strings.TrimPrefix(k, secretPrefix)))
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

// MissingVaultKey returns the fault for a key that was not given; err is why one is needed, and
// used whether there are secrets that it encrypted.
func MissingVaultKey(err error, used bool) error {
	if used {
		return badKey(err, "give the key that the deployment was installed with: "+giveKey+"; docs/state.md says how to copy it from the engine; if it is lost for good, nothing reads these secrets any more, and slipway destroy removes the deployment, all its data included, so that it can be installed anew")
	}
	return badKey(err, "make one with age-keygen, keep it, and "+giveKey)
}

func badIdentity(err error) error {
	return badKey(err, "give the file that age-keygen wrote when the deployment was first installed: "+giveKey)
}

func badKey(err error, fix string) error {
	return &fault.Fault{Code: CodeBadKey, Class: fault.Usage, Op: "read the key of the deployment's secrets", Err: err, Fix: fix}
}

// giveKey is the part of a remedy that explains how to pass the key to a run.
const giveKey = "name it in the configuration: state: {key: \"env:NAME\"} or \"file:PATH\""

func damagedSecret(name string, err error) error {
	return &fault.Fault{Code: CodeDamaged, Class: fault.Step, Op: "decrypt secret " + name, Err: err,
		Fix: "remove all below " + secretPrefix + name + "/ from the store; the step that made it makes it again: slipway install"}
}
