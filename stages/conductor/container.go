package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"sync"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// containerRunner runs each step in a container of its own, unless a cached result holds.
type containerRunner struct {
	requests stages.Requests
	mounts
	deployment *containers.Deployment
	lock       *deploymentLock // nil for what needs no lock
	scratch    string          // directory for the records of steps, which go with their container; empty: the deployment's state

	known  int                              // steps that have run before; known once the lock is taken
	cached map[string]contract.CachedResult // earlier results that hold, by step
}

// Run runs a step, unless a cached result holds.
func (c *containerRunner) Run(ctx context.Context, s contract.Spec, in, out any) (result contract.Result, err error) {
	if !s.Harmless {
		if err := c.lock.wait(ctx); err != nil {
			return result, err
		}
	}
	req, err := c.requests.Of(s, in)
	if err != nil {
		return result, err
	}
	req.Locked = c.lock != nil && !s.Harmless
	if cached, ok := c.cached[req.ID()]; ok && cached.For(req) {
		return cached.Result, cached.Result.Decode(req.ID(), out)
	}
	args := []string{"slipway", "step", s.String()}
	if c.scratch != "" {
		args = append(args, "--state", c.scratch)
	}
	e, err := c.execution(ctx, s, req, args...)
	if err != nil {
		return result, err
	}
	done, err := c.deployment.Exec(ctx, e)
	if err != nil {
		return result, err
	}
	if result, err = decodeResult(req.ID(), done); err != nil {
		return result, err
	}
	if c.scratch != "" && result.Fault != nil { // nobody finds the log
		result.Fault.Log = ""
	}
	err = result.Decode(req.ID(), out)
	_ = c.lock.noteLoss(err) // it is the step's own, too
	return result, err
}

// execution is a command that reads a request and leaves a result, in a container with what s says.
func (c *containerRunner) execution(ctx context.Context, s contract.Spec, req any, args ...string) (containers.Exec, error) {
	text, err := json.Marshal(req)
	if err != nil {
		return containers.Exec{}, fmt.Errorf("encode the request of %s: %w", s, err)
	}
	e := containers.Exec{Args: args, Files: contract.Parts(contract.RequestFile, string(text)), Result: contract.ResultFile}
	return e, c.mount(ctx, &e, s)
}

// mounts are what containers can get besides the deployment's state.
type mounts struct {
	client      *dagger.Client
	cluster     *containers.Cluster // nil unless the provider's cluster is a service
	environment contract.Environment
	release     *dagger.Directory
	manifests   *dagger.Directory
	tlsKey      *dagger.Secret // nil: there is none
	given       map[string]*dagger.Secret
	access      *clusterAccess // nil unless the cluster is there already
	account     *dagger.Secret // nil: there is none
}

func (m mounts) mount(ctx context.Context, e *containers.Exec, s contract.Spec) (err error) {
	e.Directories, e.Secrets = map[string]*dagger.Directory{}, map[string]*dagger.Secret{}
	if !s.Offline {
		if m.cluster != nil {
			e.Cluster = m.cluster.Service()
		}
		access, err := m.access.secret(ctx)
		if err != nil {
			return err
		}
		if access != nil {
			e.Secrets[contract.AccessFile] = access
		}
	}
	if s.Platform {
		e.Directories[contract.PlatformDir] = m.release
	}
	if s.Manifests {
		e.Directories[contract.BundleDir+"/manifests"] = m.manifests
	}
	if s.Terraform {
		if e.Directories[contract.TerraformDir], err = directory(m.client, m.environment.Root); err != nil {
			return err
		}
	}
	if s.TLSKey && m.tlsKey != nil {
		e.Secrets[contract.TLSKeyFile] = m.tlsKey
	}
	if s.Account && m.account != nil {
		e.Secrets[contract.RegistryAuthFile] = m.account
	}
	if s.UserSecrets {
		for name, secret := range m.given {
			e.Secrets[path.Join(contract.UserSecretsDir, name)] = secret
		}
	}
	return nil
}

// directory is a Terraform root on the engine.
func directory(client *dagger.Client, root fs.FS) (*dagger.Directory, error) {
	dir := client.Directory()
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := bounded.FS(root, name, bounded.Generated)
		if err == nil {
			dir = dir.WithNewFile(name, string(text))
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the Terraform root: %w", err)
	}
	return dir, nil
}

func decodeResult(id string, done containers.Outcome) (contract.Result, error) {
	var result contract.Result
	if done.Result == nil {
		return result, &fault.Fault{
			Code: fault.CodeBug, Class: fault.Bug, Op: "run " + id,
			Fix: "report this with the output above",
			Err: fmt.Errorf("exit status %d without a result: %w: %s", done.ExitCode, done.NoResult, lastWords(done.Stderr)),
		}
	}
	if err := json.Unmarshal(done.Result, &result); err != nil {
		return result, fmt.Errorf("decode the result of %s: %w", id, err)
	}
	return result, nil
}

// clusterAccess finds the access to an existing cluster. The deployment's state
// never holds it, so that each command uses what the configuration refers to now.
type clusterAccess struct {
	to   providers.ExternalCluster
	find func(context.Context, providers.ExternalCluster) (*dagger.Secret, error) // see Options.Access

	mu    sync.Mutex
	found *dagger.Secret
}

// secret is a kubeconfig; nil where the cluster is Slipway's own.
func (a *clusterAccess) secret(ctx context.Context) (*dagger.Secret, error) {
	if a == nil {
		return nil, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.found != nil {
		return a.found, nil
	}
	if a.find == nil {
		return nil, errors.New("the access to the cluster is not readable here")
	}
	found, err := a.find(ctx, a.to)
	if err == nil {
		a.found = found
	}
	return found, err
}

// commands runs commands of Slipway's own in a container with the deployment's state.
// Their errors are the faults that the commands printed.
type commands struct{ deployment *containers.Deployment }

// query runs an action of `slipway state` in a container with what e says, and returns its answer.
func query[In, Out any](ctx context.Context, c commands, e containers.Exec, action contract.Action[In, Out], in In) (out Out, err error) {
	if e.Args, err = stateCommand(action, in); err != nil {
		return out, err
	}
	if _, none := any(out).(contract.Nothing); none {
		_, err = c.exec(ctx, e)
		return out, err
	}
	e.Result = contract.ResultFile
	err = c.result(ctx, e, &out)
	return out, err
}

func stateCommand[In, Out any](action contract.Action[In, Out], in In) ([]string, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("encode the request: %w", err)
	}
	return []string{"slipway", "state", string(action), string(text)}, nil
}

// result runs e, of which the result is JSON, and decodes that.
func (c commands) result(ctx context.Context, e containers.Exec, into any) error {
	done, err := c.exec(ctx, e)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(done.Result, into); err != nil {
		return fmt.Errorf("decode the result of %v: %w", e.Args, err)
	}
	return nil
}

func (c commands) exec(ctx context.Context, e containers.Exec) (containers.Outcome, error) {
	done, err := c.deployment.Exec(ctx, e)
	if err != nil {
		return done, err
	}
	if err := ended(e.Args, done); err != nil || e.Result == "" || done.Result != nil {
		return done, err
	}
	return done, fmt.Errorf("run %v: no result: %w: %s", e.Args, done.NoResult, containers.Complaint(done.Stderr))
}

// ended is the error of a command of Slipway's that did not end well.
func ended(args []string, done containers.Outcome) error {
	if done.ExitCode == 0 {
		return nil
	}
	if f := containers.ParseFault(done.Stderr); f != nil {
		return f
	}
	return fmt.Errorf("run %v: exit status %d: %s", args, done.ExitCode, containers.Complaint(done.Stderr))
}
