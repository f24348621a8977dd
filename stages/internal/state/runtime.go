package state

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/stages/contract"
)

const (
	// codeVersion: the runtime state was written by another version of Slipway, which this
	// one does not read.
	codeVersion fault.Code = "RUN-009"
	// codeOtherProvider: the deployment is on another provider than the configuration says.
	codeOtherProvider fault.Code = "DEP-009"
)

// ErrDamaged says that the runtime state is no YAML of ours. Nothing is decided by it,
// so that the next run just writes it anew.
var ErrDamaged = errors.New("decode " + runtime)

func runtimes() store.Versions {
	return store.Versions{Prefix: "state/", Suffix: ".yaml"}
}

// Runtime is the deployment's runtime state; without one the error is fs.ErrNotExist. One of a newer
// version is rejected. Version 0, from before versions were written, has the fields of version 1.
func Runtime(ctx context.Context, s *store.Store) (*contract.RuntimeState, error) {
	data, generation, err := runtimes().Newest(ctx, s)
	if err != nil {
		return nil, err
	}
	var is struct {
		Version int `json:"version"`
	}
	if err = document.CheckPlain(data); err == nil {
		err = yaml.Unmarshal(data, &is)
	}
	if err == nil && is.Version < 0 {
		err = fmt.Errorf("its version is %d", is.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if is.Version > contract.RuntimeVersion {
		return nil, otherVersion(fmt.Errorf("%s has version %d; this program knows %d", runtimes().Key(generation), is.Version, contract.RuntimeVersion))
	}
	out := &contract.RuntimeState{}
	if err := yaml.UnmarshalStrict(data, out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	out.Version = contract.RuntimeVersion
	return out, nil
}

func otherVersion(err error) error {
	return &fault.Fault{Code: codeVersion, Class: fault.Usage, Op: "read the deployment's runtime state", Err: err, Fix: "use the Slipway that wrote it"}
}

// CheckRuntime refuses a runtime state that this program does not read, before a run changes
// anything of the deployment that it describes. What else is wrong with one is mended
// by a run.
func CheckRuntime(ctx context.Context, s *store.Store) error {
	_, err := Runtime(ctx, s)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		return nil
	}
	return err
}

// CheckProvider refuses a provider that is not the one on which the deployment has a
// cluster: a destroy would remove nothing there, and then the state, by which alone that
// cluster is found. An empty one is not checked.
func CheckProvider(ctx context.Context, p Backend, s *store.Store, provider string) error {
	r, err := Runtime(ctx, s)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrDamaged) {
		return nil
	}
	if err != nil || provider == "" || r.Provider == "" || r.Provider == provider {
		return err
	}
	known, err := p.HasKubeconfig(ctx, s)
	if err == nil && !known {
		var theirs *Cluster
		theirs, err = ClusterOf(ctx, s)
		known = theirs != nil
	}
	if err != nil || !known {
		return err
	}
	return &fault.Fault{
		Code: codeOtherProvider, Class: fault.Usage, Op: "recognise the deployment",
		Err: fmt.Errorf("deployment %s is on provider %s, and the configuration says %s; nothing was changed", r.Deployment, r.Provider, provider),
		Fix: "give the configuration with which it was installed: --config; or name another deployment: --name",
	}
}

// PutRuntime writes what the steps of a run, which has the lock of a generation, found out,
// without secrets. What now leaves out, because the run did not get that far, stays as an
// earlier run found it.
func PutRuntime(ctx context.Context, s *store.Store, generation int64, now contract.RuntimeState) error {
	earlier, err := Runtime(ctx, s)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, ErrDamaged):
		earlier = &contract.RuntimeState{}
	case err != nil:
		return err
	}
	now.Version = contract.RuntimeVersion
	now.Platform = cmp.Or(now.Platform, earlier.Platform)
	now.Infrastructure = cmp.Or(now.Infrastructure, earlier.Infrastructure)
	now.Revision = cmp.Or(now.Revision, earlier.Revision)
	now.Access = cmp.Or(now.Access, earlier.Access)
	data, err := yaml.Marshal(now)
	if err != nil {
		return fmt.Errorf("encode %s: %w", runtime, err)
	}
	return runtimes().Put(ctx, s, generation, data)
}
