package conductor

import (
	"context"
	"encoding/json"
	"fmt"
	"path"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
)

// containerRunner runs each step in a container of its own, unless its earlier result
// was verified already.
type containerRunner struct {
	requests
	mounts
	deployment *containers.Deployment
	lock       *deploymentLock // nil for what needs no lock
	scratch    string          // directory for the records of steps, which go with their container; empty: the deployment's state

	known  int                              // steps that have run before; known once the lock is taken
	cached map[string]contract.CachedResult // earlier results that hold, by step
}

func (c *containerRunner) run(ctx context.Context, s contract.Spec, in, out any) (result contract.Result, err error) {
	if !s.Harmless {
		if err := c.lock.wait(ctx); err != nil {
			return result, err
		}
	}
	req, err := c.of(s, in)
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
	_ = c.lock.heard(err) // it is the step's own, too
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
	client    *dagger.Client
	cluster   *containers.Cluster // nil unless the provider's cluster is a service
	site      contract.Site
	release   *dagger.Directory
	manifests *dagger.Directory
	tlsKey    *dagger.Secret // nil: there is none
	given     map[string]*dagger.Secret
	access    *clusterAccess // nil unless the cluster is there already
	account   *dagger.Secret // nil: there is none
}

// mount gives a container what the step needs.
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
		if e.Directories[contract.TerraformDir], err = directory(m.client, m.site.Root); err != nil {
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

// decodeResult reads what a step left behind.
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
