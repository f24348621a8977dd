// Package conductor drives a run on a deployment: it wires the graph, has each step
// run in a container, and keeps the record.
package conductor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages/contract"
)

// The codes of the conductor's own faults.
const (
	// codeNoResult: a step ended without a result.
	codeNoResult fault.Code = "CTR-003"
	// codeNotKept: the record of a run could not be written to the deployment's state.
	// What the run did is not touched by that.
	codeNotKept fault.Code = "RUN-007"
	// CodeNotThere: nothing is installed under that name, or its cluster is on
	// another engine.
	CodeNotThere fault.Code = "DEP-001"
	// codeNoCluster: the provider runs no cluster of its own.
	codeNoCluster fault.Code = "DEP-002"
	// codePorts: ports of this machine on which the cluster is to be reached are
	// taken, or this user must not listen there.
	codePorts fault.Code = "DEP-003"
)

// Options say what a conductor works on. Client, Images, Config and Provider are
// required, the last one not for hooks around configuring; Release, ReleaseDir and
// ReleaseDigest where a platform is installed.
type Options struct {
	Client        *dagger.Client
	Images        *containers.Images
	Config        *config.Config
	Provider      providers.Provider
	Release       *platform.Release
	ReleaseDir    *dagger.Directory
	ReleaseDigest string // identifies the release's content
	// Tools maps each tool of the toolchain to the version that it must have,
	// without a leading v.
	Tools map[string]string
	// Version of Slipway, for the run's record.
	Version string
	// User and Host say who holds the deployment's lock, for others to read.
	User, Host string
	// LockTimeout is how long a run waits for another one that has the lock and is
	// alive.
	LockTimeout time.Duration
	// TLSKey is the private key of a given certificate.
	TLSKey *dagger.Secret
	// Given are the secrets that the configuration refers to and the platform may
	// have, by the names that platform.GivenNames lists.
	Given map[string]*dagger.Secret
	// State says where the deployment's state is.
	State State
	// Secret finds what the configuration's hooks refer to; its error says why it
	// is not there. Nil: none is.
	Secret func(config.SecretRef) (*dagger.Secret, error)
	// Hooks run before those of the configuration.
	Hooks []pipeline.Hook
	// Kept is the ID of the cluster that another process keeps running in this
	// session; empty: none is. What runs leaves it running.
	Kept string
	// Select limits an install to some of its steps; the zero value: all.
	Select pipeline.Select
	// Parallel limits the steps that run at the same time; 0 is no limit.
	Parallel int
	// Hint completes the commands in a remedy, for the run's record, so that they
	// work on this deployment; nil leaves them as they are.
	Hint func(string) string
	// Begin is told the graph before the first of its steps starts; it may be nil.
	Begin func([]pipeline.Node)
	// Observe is told when a step starts and ends; it may be nil.
	Observe func(pipeline.Event)
	// Stop, when closed, lets no further step start.
	Stop <-chan struct{}
}

// Conductor drives runs on one deployment, one at a time.
type Conductor struct {
	opts       Options
	place      providers.Deployment
	deployment *containers.Deployment
	cluster    *containers.Cluster   // nil unless the provider's cluster is a service
	run        string                // id of the run
	lease      *lease                // the lock of the run; nil for what needs none
	online     map[pipeline.Key]bool // steps that are bound to the cluster
	hookLogs   map[string]string     // what hooks printed, by name in the run's directory

	known    int                      // steps that have succeeded before with the same tools
	hooked   []string                 // steps with hooks around them
	verified map[string]contract.Seen // what infrastructure/verify found to hold, by step
	// inProcess runs a step in this process, to verify its earlier result; nil in
	// every conductor but that of infrastructure/verify.
	inProcess func(context.Context, contract.Request) contract.Result
	given     []string // the names of the Given, whether or not they are in the options
	mu        sync.Mutex
}

// New is a conductor for a deployment. It touches nothing.
func New(opts Options) *Conductor {
	c := &Conductor{
		opts: opts,
		place: providers.Deployment{
			Name: opts.Config.Global.Name, Scale: opts.Config.Global.Scale, Section: opts.Config.Section(opts.Config.Provider),
		},
		deployment: containers.Open(opts.Client, opts.Config.Global.Name, opts.Images, opts.State.access(opts)),
		given:      slices.Sorted(maps.Keys(opts.Given)),
	}
	if server, ok := opts.Provider.(providers.ClusterServer); ok {
		c.cluster = c.deployment.Cluster(server.Node(c.place).Ports...)
		c.cluster.Keep(opts.Kept)
	}
	return c
}

// add puts a step that runs in a container into the graph. input is called once
// everything that the step needs has succeeded.
func add[In, Out any](c *Conductor, p *pipeline.Pipeline, d contract.Step[In, Out], input func() In, needs ...pipeline.Dep) *pipeline.Step[Out] {
	if c.online == nil {
		c.online = map[pipeline.Key]bool{}
	}
	c.online[d.Key] = !d.Offline
	return pipeline.Add(p, d.Key, func(ctx context.Context) (Out, error) {
		var out Out
		ctx, end := inSpan(ctx, d.Key)
		result, err := c.exec(ctx, d.Spec, input(), &out)
		end(result.Status, err)
		if errors.Is(err, &fault.Fault{Code: contract.CodeNotVerified}) {
			err = fmt.Errorf("%w: %w", pipeline.ErrNotVerified, err)
		}
		pipeline.Describe(ctx, pipeline.Detail{
			Reused:  result.Status == contract.Reused,
			Attempt: result.Attempt,
			Log:     path.Join("steps", d.Stage+"."+d.Name, "log.txt"),
		})
		return out, err
	}, needs...)
}

// exec runs one step in its container and decodes its output into out. A step
// that infrastructure/verify has looked at already needs no container.
func (c *Conductor) exec(ctx context.Context, s contract.Spec, in, out any) (result contract.Result, err error) {
	if !s.Harmless {
		if err := c.lease.wait(ctx); err != nil {
			return result, err
		}
	}
	req, err := c.request(ctx, s, in)
	if err != nil {
		return result, err
	}
	if c.inProcess != nil {
		return c.look(ctx, req, out)
	}
	if seen, ok := c.verified[s.String()]; ok && seen.For(req) {
		return seen.Result, seen.Result.Decode(req.ID(), out)
	}
	e := containers.Exec{
		Args:        []string{"slipway", "step", s.String()},
		Directories: map[string]*dagger.Directory{},
		Secrets:     map[string]*dagger.Secret{},
		Result:      contract.ResultFile,
	}
	if err := c.mount(&e, s); err != nil {
		return result, err
	}
	text, err := json.Marshal(req)
	if err != nil {
		return result, fmt.Errorf("encode the request of %s: %w", s, err)
	}
	e.Files = map[string]string{contract.RequestFile: string(text)}
	done, err := c.deployment.Exec(ctx, e)
	if err != nil {
		return result, err
	}
	if result, err = decodeResult(req.ID(), done); err != nil {
		return result, err
	}
	if req.Count {
		c.known = result.Known
	}
	return result, result.Decode(req.ID(), out)
}

// request is what the step's container is asked.
func (c *Conductor) request(ctx context.Context, s contract.Spec, in any) (contract.Request, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return contract.Request{}, fmt.Errorf("encode the input of %s: %w", s, err)
	}
	timeout := s.Timeout
	if timeout == 0 {
		timeout = time.Duration(c.opts.Config.Advanced.Timeouts.Step)
	}
	lasting := input
	if v, ok := in.(contract.Volatile); ok {
		if lasting, err = json.Marshal(v.Lasting()); err != nil {
			return contract.Request{}, fmt.Errorf("encode the input of %s: %w", s, err)
		}
	}
	return contract.Request{
		Run: c.run, Stage: s.Stage, Step: s.Name, Timeout: contract.Duration(timeout),
		Deployment: c.opts.Config.Global.Name, Digests: c.digests(s, lasting), Input: input,
		VerifyOnly: c.inProcess != nil || pipeline.VerifyOnly(ctx),
		Locked:     (c.inProcess != nil || c.lease != nil) && !s.Harmless,
		Count:      s.Count, Cluster: !s.Offline,
	}, nil
}

// mount gives a container what the step needs.
func (c *Conductor) mount(e *containers.Exec, s contract.Spec) (err error) {
	if !s.Offline && c.cluster != nil {
		e.Cluster = c.cluster.Service()
	}
	if s.Platform {
		e.Directories[contract.PlatformDir] = c.opts.ReleaseDir
	}
	if s.Manifests {
		e.Directories[contract.BundleDir+"/manifests"] = c.opts.Images.Manifests
	}
	if s.Terraform {
		if e.Directories[contract.TerraformDir], err = c.terraformRoot(); err != nil {
			return err
		}
	}
	if s.TLSKey && c.opts.TLSKey != nil {
		e.Secrets[contract.TLSKeyFile] = c.opts.TLSKey
	}
	if s.Given {
		for name, secret := range c.opts.Given {
			e.Secrets[path.Join(contract.GivenDir, name)] = secret
		}
	}
	return nil
}

// decodeResult reads what a step left behind.
func decodeResult(id string, done containers.Outcome) (contract.Result, error) {
	var result contract.Result
	if done.Result == nil {
		return result, &fault.Fault{
			Code: codeNoResult, Class: fault.Bug, Op: "run " + id,
			Fix: "report this together with the output above",
			Err: fmt.Errorf("exit status %d without a result: %s", done.ExitCode, lastLine(done.Stderr)),
		}
	}
	if err := json.Unmarshal(done.Result, &result); err != nil {
		return result, fmt.Errorf("decode the result of %s: %w", id, err)
	}
	return result, nil
}

// digests are what an earlier result of a step counts for: its input, the
// platform release if it reads that, and the tools and images of the run.
func (c *Conductor) digests(s contract.Spec, input []byte) journal.Digests {
	sum := func(parts ...string) string {
		h := sha256.New()
		for _, part := range parts {
			fmt.Fprintf(h, "%d:%s\n", len(part), part)
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	release := ""
	if s.Platform {
		release = c.opts.ReleaseDigest
	}
	return journal.Digests{Input: sum(s.String(), string(input)), Config: sum(release), Tools: sum(c.opts.Images.Digest)}
}

// terraformInput is what the steps with the provider's root work on. Another root is
// another input, also where its variables are the same.
func (c *Conductor) terraformInput() (contract.TerraformInput, error) {
	root, err := c.opts.Provider.Terraform(c.place)
	if err != nil {
		return contract.TerraformInput{}, err
	}
	digest, err := platform.Digest(root.Files)
	if err != nil {
		return contract.TerraformInput{}, fmt.Errorf("read the Terraform root: %w", err)
	}
	return contract.TerraformInput{Vars: root.Vars, Root: digest}, nil
}

// terraformRoot is the provider's root as a directory of the engine.
func (c *Conductor) terraformRoot() (*dagger.Directory, error) {
	root, err := c.opts.Provider.Terraform(c.place)
	if err != nil {
		return nil, err
	}
	dir := c.opts.Client.Directory()
	err = fs.WalkDir(root.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root.Files, name)
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

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
