package state

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

// newest is the newest version of a record; nil if there is none. If it cannot be read, or sound finds
// that something is missing in it, the error is store.CodeDamaged with its key.
func newest[T any](ctx context.Context, s *store.Store, v store.Versions, sound func(*T) error) (*T, error) {
	data, generation, err := v.Newest(ctx, s)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	out := new(T)
	err = json.Unmarshal(data, out)
	if err == nil {
		err = sound(out)
	}
	if err != nil {
		return nil, s.Damaged(v.Key(generation), err)
	}
	return out, nil
}

// Decode is the record of a run out of what is stored of it.
func Decode(s *store.Store, run string, data []byte) (*report.Run, error) {
	r, err := report.Decode(data)
	if err == nil && r.ID != run {
		err = fmt.Errorf("it is the record of run %q, not of run %s", r.ID, run)
	}
	if err != nil {
		return nil, s.Damaged(runKey(run, report.RecordFile), err)
	}
	return r, nil
}

// Damaged is store.CodeDamaged with the key if err is a *report.FileError of a run, and err if not.
func Damaged(s *store.Store, run string, err error) error {
	if f, ok := errors.AsType[*report.FileError](err); ok {
		return s.Damaged(runKey(run, f.Name), f.Err)
	}
	return err
}

// clusters says which cluster the deployment is on, where that is not Slipway's own.
func clusters() store.Versions {
	return store.Versions{Prefix: "cluster/", Suffix: ".json"}
}

// Cluster tells an existing cluster from others. It holds no credential.
type Cluster struct {
	UID    string `json:"uid"`    // of its namespace kube-system
	Server string `json:"server"` // URL at which it was reached first
}

// ClusterOf is the cluster that the deployment is on, where that is not Slipway's own; nil
// while nothing was installed there.
func ClusterOf(ctx context.Context, s *store.Store) (*Cluster, error) {
	return newest(ctx, s, clusters(), func(c *Cluster) error {
		if c.UID == "" {
			return errors.New("it has no uid")
		}
		return nil
	})
}

// PutCluster notes which cluster the deployment is on, for who has the lock of a generation.
func PutCluster(ctx context.Context, s *store.Store, generation int64, c Cluster) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return clusters().Put(ctx, s, generation, data)
}

// identityValue tells the deployment from others of the same name. It has versions: the first one that
// a holder of the lock makes stays; a version of an earlier holder, which the network has delayed, is
// below it.
var identityValue = store.Versions{Prefix: "deployment/", Suffix: ".json"} //nolint:gochecknoglobals // a constant

// Identity is the identity of the deployment in s; nil while there is none.
func Identity(ctx context.Context, s *store.Store) (*contract.Identity, error) {
	return newest(ctx, s, identityValue, func(i *contract.Identity) error {
		if i.ID == "" {
			return errors.New("it has no id")
		}
		return nil
	})
}

// MakeIdentity is Identity for the holder of a generation of the lock; it makes one if there is
// none.
func MakeIdentity(ctx context.Context, s *store.Store, generation int64, name string) (*contract.Identity, error) {
	existing, err := Identity(ctx, s)
	if err != nil || existing != nil {
		return existing, err
	}
	data, err := json.Marshal(contract.Identity{ID: strings.ToLower(rand.Text()), Name: name, Created: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return nil, err
	}
	if err := s.Create(ctx, identityValue.Key(generation), data); err != nil && !errors.Is(err, store.ErrExists) {
		return nil, err
	}
	return Identity(ctx, s)
}

// PutUnsaved keeps a state of Terraform that could not be stored as the deployment's, because
// its run had lost the lock, and returns its key.
func PutUnsaved(ctx context.Context, s *store.Store, run string, data []byte) (string, error) {
	if err := check(run); err != nil {
		return "", err
	}
	key := path.Join(unsavedDir, run+".tfstate")
	return key, s.Put(ctx, key, data)
}

// Unsaved are the keys of such states. They stay until somebody deletes them.
func Unsaved(ctx context.Context, s *store.Store) ([]string, error) {
	return s.List(ctx, unsavedDir+"/")
}
