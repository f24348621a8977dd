package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Backend is where a deployment's state is, seen from a container.
type Backend struct {
	// Volume is the directory of the state volume: working space, and the store
	// itself where URL is empty.
	Volume string
	// URL is the address of the bucket with the deployment's state.
	URL string
	// KeyFile holds the key of the deployment's secrets; there need not be one.
	KeyFile string
	// CredentialsFile holds credentials for the bucket that are a file; empty where none do.
	CredentialsFile string
	// MakeKey tells that a key is made, and kept in Volume, where none is given.
	MakeKey bool
	// Node is the directory of the node's volume; empty where it is not mounted.
	Node string
	// Openers open buckets, by the scheme of their URLs.
	Openers map[string]store.Opener
}

// At is the backend that the conductor named in the environment of a container with
// the state volume in a directory.
func At(volume string, getenv func(string) string, openers map[string]store.Opener) Backend {
	return Backend{
		Volume: volume, URL: getenv(contract.StateURLVariable), Openers: openers,
		KeyFile: contract.StateKeyFile, MakeKey: getenv(contract.StateMakeKeyVariable) != "",
		Node:            getenv(contract.NodeDirVariable),
		CredentialsFile: getenv("GOOGLE_APPLICATION_CREDENTIALS"),
	}
}

// Remote tells whether the state is somewhere else than in the volume.
func (p Backend) Remote() bool { return p.URL != "" }

// Open opens the store. Its faults are those of package store.
func (p Backend) Open(ctx context.Context) (*store.Store, error) {
	if p.Remote() {
		return store.Open(ctx, p.URL, store.Options{Openers: p.Openers})
	}
	return p.volume(ctx)
}

func (p Backend) volume(ctx context.Context) (*store.Store, error) {
	dir, err := filepath.Abs(p.Volume)
	if err != nil {
		return nil, fmt.Errorf("find the state volume: %w", err)
	}
	return store.Open(ctx, "file://"+filepath.ToSlash(dir), store.Options{})
}

// Vault opens the secrets of the deployment in s; in the volume, their key lies beside them.
// The error is store.CodeBadKey when there is no key that could be theirs.
func (p Backend) Vault(ctx context.Context, s *store.Store) (vault *store.Vault, err error) {
	if !p.Remote() {
		key, err := store.LocalVaultKey(ctx, s)
		if err != nil {
			return nil, err
		}
		return store.OpenVault(s, key), nil
	}
	text, err := os.ReadFile(p.KeyFile)
	switch {
	case err == nil:
		key, err := store.ParseVaultKey(redact.New(text))
		if err != nil {
			return nil, err
		}
		return store.OpenVault(s, key), nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read the key of the deployment's secrets: %w", err)
	}
	names, err := store.OpenVault(s, nil).Names(ctx)
	switch {
	case err != nil:
		return nil, err
	case !p.MakeKey:
		return nil, store.MissingVaultKey(errors.New("none was given, and in a bucket it would lie beside what it protects"), len(names) > 0)
	}
	volume, err := p.volume(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, volume.Close()) }()
	if _, err := volume.Get(ctx, store.VaultKeyFile); errors.Is(err, fs.ErrNotExist) && len(names) > 0 {
		// A key that is made now opens nothing that is there already.
		return nil, store.MissingVaultKey(fmt.Errorf("%s holds secrets, and their key is on the engine that made it", s.Location()), true)
	}
	key, err := store.LocalVaultKey(ctx, volume)
	if err != nil {
		return nil, err
	}
	return store.OpenVault(s, key), nil
}

// kubeconfig is the secret that is the administrator's access to the cluster.
const kubeconfig = "kubeconfig"

func (p Backend) kubeconfigFile() string { return filepath.Join(p.Volume, secretsDir, kubeconfig) }

// CheckSecrets tells whether the secrets of the deployment can be read and written
// here. In the volume they can.
func (p Backend) CheckSecrets(ctx context.Context, s *store.Store) error {
	if !p.Remote() {
		return nil
	}
	vault, err := p.Vault(ctx, s)
	if err == nil {
		err = vault.Check(ctx)
	}
	return err
}

// SealKubeconfig copies the volume's kubeconfig, encrypted, to s where that is remote,
// for who has the lock of a generation, and reports whether the copy was missing or old. With
// look it copies nothing.
func (p Backend) SealKubeconfig(ctx context.Context, s *store.Store, generation int64, look bool) (bool, error) {
	if !p.Remote() {
		return false, nil
	}
	text, err := os.ReadFile(p.kubeconfigFile())
	if err != nil {
		return false, fmt.Errorf("read the kubeconfig: %w", err)
	}
	vault, err := p.Vault(ctx, s)
	if err != nil {
		return false, err
	}
	there, err := vault.Get(ctx, kubeconfig)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err == nil && string(there.Reveal()) == string(text) {
		return false, nil
	}
	if look {
		return true, nil
	}
	return true, vault.Put(ctx, generation, kubeconfig, redact.New(text))
}

// HasKubeconfig tells whether the state has a kubeconfig. Where it is in a bucket, a file in the
// volume does not count: another engine may have removed the deployment since.
func (p Backend) HasKubeconfig(ctx context.Context, s *store.Store) (bool, error) {
	if p.Remote() {
		names, err := store.OpenVault(s, nil).Names(ctx)
		return slices.Contains(names, kubeconfig), err
	}
	_, err := os.Stat(p.kubeconfigFile())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Kubeconfig is the administrator's access to the cluster: the file in the volume
// or, where that is not there, the secret in s. Without one the error is
// fs.ErrNotExist.
func (p Backend) Kubeconfig(ctx context.Context, s *store.Store) ([]byte, error) {
	text, err := os.ReadFile(p.kubeconfigFile())
	if err == nil || !errors.Is(err, fs.ErrNotExist) || !p.Remote() {
		return text, err
	}
	if known, err := p.HasKubeconfig(ctx, s); err != nil {
		return nil, err
	} else if !known {
		return nil, fs.ErrNotExist
	}
	vault, err := p.Vault(ctx, s)
	if err != nil {
		return nil, err
	}
	value, err := vault.Get(ctx, kubeconfig)
	return value.Reveal(), err
}

// RestoreKubeconfig writes the kubeconfig that is in s to the volume, unless there
// is one: for steps on a machine that has not worked on the deployment yet.
func (p Backend) RestoreKubeconfig(ctx context.Context, s *store.Store) (err error) {
	if !p.Remote() {
		return nil
	}
	if _, err := os.Stat(p.kubeconfigFile()); err == nil {
		return nil
	}
	text, err := p.Kubeconfig(ctx, s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // there is no cluster yet
	} else if err != nil {
		return err
	}
	volume, err := p.volume(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, volume.Close()) }()
	return volume.Put(ctx, secretsDir+"/"+kubeconfig, text)
}

// ClusterLost reports whether the volume of the cluster is empty though the state has the access
// to it, which goes with what a destroy removes (ForgetCluster). It is not, where the volume is
// not mounted.
func (p Backend) ClusterLost(ctx context.Context, s *store.Store) (bool, error) {
	if p.Node == "" {
		return false, nil
	}
	// The node makes this file at its first start (containers/node, pki.go), and a wipe removes it last.
	if _, err := os.Lstat(filepath.Join(p.Node, "pki", "ca.crt")); err == nil {
		return false, nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("look for the cluster: %w", err)
	}
	return p.HasKubeconfig(ctx, s)
}

// ForgetCluster removes the access to a cluster that was removed, whose volume would be missed
// otherwise: from the store, and from the volume where that is not the store.
func (p Backend) ForgetCluster(ctx context.Context, w *Work) error {
	err := store.RemoveSecret(ctx, w.Store, w.Generation, kubeconfig)
	if err == nil {
		err = w.Held(ctx)
	}
	if err == nil {
		err = os.Remove(p.kubeconfigFile())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the access to the cluster: %w", err)
	}
	return nil
}
