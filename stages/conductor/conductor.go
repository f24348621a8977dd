// Package conductor drives a workflow on a deployment: it runs each step in a container, with hooks
// around it and under the deployment's lock, writes the record, and runs Slipway's cluster. Package
// stages wires the workflows.
package conductor

import (
	"context"
	"maps"
	"slices"
	"time"

	"dagger.io/dagger"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// The codes of the conductor's own faults.
const (
	// codeNotWritten: the record of a run could not be written to the deployment's state.
	// This does not affect what the run did.
	codeNotWritten fault.Code = "RUN-007"
	// codeNoCluster: the provider runs no cluster of its own.
	codeNoCluster fault.Code = "DEP-002"
	// codePorts: ports of this machine on which the cluster is to be reached are
	// taken, or this user must not listen there.
	codePorts fault.Code = "DEP-003"
	// codeNoToolchain: the toolchain's container holds the access to a cluster that was
	// there already, and cannot be handed to another client of the engine.
	codeNoToolchain fault.Code = "DEP-008"
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
	ReleaseCommit string // of the Git repository that has the release; empty where none has
	ReleaseFrom   string // directory that the command line named; empty: it named none
	// Tools maps each tool of the toolchain to its version, without a leading v.
	Tools map[string]string
	// Version of Slipway, and of the Dagger engine, for the run's record.
	Version, Engine string
	// Origin names this process to others that work in the same Dagger session; empty
	// where there are none. See contract.Line.
	Origin string
	// User and Host say who holds the deployment's lock, for others to read.
	User, Host string
	// LockTimeout is how long a run waits for a live holder of the lock.
	LockTimeout time.Duration
	// TLSKey is the private key of the user's certificate.
	TLSKey *dagger.Secret
	// UserSecrets are the secrets that the configuration refers to and the platform may
	// have, by the names that platform.GivenNames lists.
	UserSecrets map[string]*dagger.Secret
	// State says where the deployment's state is.
	State State
	contract.RunOptions
	// Warn reports what fails nothing and is not in a record; it may be nil.
	Warn func(string)
	// Reproduce returns the commands that reproduce a failed run, for its record; it may be nil.
	Reproduce func(*report.Run) []string
	// Approve is the digest of the plan that a workflow may carry out; empty: any.
	Approve string
	// Approval is that somebody has agreed to the workflow, for the run's record; its By is
	// filled in. Nil: nobody was asked.
	Approval *report.Approval
	// Path is what a plan of an upgrade says of the releases that it goes through.
	Path contract.PlannedPath
	// Secret finds what the configuration's hooks refer to; its error says why it
	// is not there. Nil: no secret can be found.
	Secret func(config.SecretRef) (*dagger.Secret, error)
	// Access finds the kubeconfig of an existing cluster: one context, which needs nothing of this
	// machine. It is called once, if something reaches the cluster. Nil: there is no such cluster.
	Access func(context.Context, providers.ExternalCluster) (*dagger.Secret, error)
	// Hooks run before those of the configuration.
	Hooks []pipeline.Hook
	// Background is the ID of the cluster that another process runs in this session;
	// empty: none does. Workflows leave it running.
	Background string
	// Until limits an install to these steps and what is before them; empty: all. See
	// pipeline.Options.
	Until []string
	// Parallel limits the steps that run at the same time; 0 is no limit.
	Parallel int
	// Flags are those that commands need to work on this deployment, for the run's record, such as
	// "--name dev".
	Flags string
	// Begin is called with the graph before the first of its steps starts; it may be nil.
	Begin func([]pipeline.Node)
	// Observe is called when a step starts and ends; it may be nil.
	Observe func(pipeline.Event)
	// Stop, when closed, lets no further step start.
	Stop <-chan struct{}
}

// Conductor drives workflows on one deployment, one at a time.
type Conductor struct {
	*Cluster
	*Records

	opts   Options
	inputs contract.Inputs
	hooks  hookExecutor
	access *clusterAccess // nil unless the cluster is there already
	// account is that with which the nodes of such a cluster pull; nil: they have none.
	account *dagger.Secret
}

// New is a conductor for a deployment. It touches nothing.
func New(opts Options) (*Conductor, error) {
	cfg := opts.Config
	environment, err := stages.EnvironmentOf(opts.Provider, stages.DeploymentOf(cfg))
	if err != nil {
		return nil, err
	}
	refs, rewrite := opts.Images.In(environment.OwnsNodes())
	reach := opts.State.access(environment, opts.Origin)
	reach.Env[contract.ProviderVariable] = cfg.Provider
	deployment := containers.Open(opts.Client, cfg.Global.Name, opts.Images, reach)
	var access *clusterAccess
	var account *dagger.Secret
	if environment.Existed() {
		access = &clusterAccess{to: *environment.External, find: opts.Access}
		account, environment.Account = opts.Images.PullSecret, opts.Images.PullSecretDigest
	}
	records := &Records{
		commands: commands{deployment}, name: cfg.Global.Name, user: opts.User, host: opts.Host, access: access,
		node: environment.OwnsNodes(), inBucket: opts.State.URL != "",
	}
	cluster := &Cluster{deployment: deployment, records: records, provider: cfg.Provider, access: access}
	if environment.OwnsNodes() {
		cluster.service = deployment.Cluster(environment.Local.Bind, environment.Local.APIPort, environment.Local.Ports...)
		cluster.service.Keep(opts.Background)
	}
	return &Conductor{
		Cluster: cluster, Records: records, opts: opts, access: access,
		inputs: contract.Inputs{
			Config: cfg, Release: opts.Release, ReleaseDigest: opts.ReleaseDigest, Environment: environment,
			Images: refs, ImagesDigest: opts.Images.Digest, Rewrite: rewrite, Tools: opts.Tools,
			UserSecrets: slices.Sorted(maps.Keys(opts.UserSecrets)), RunOptions: opts.RunOptions,
		},
		account: account,
		hooks:   hookExecutor{client: opts.Client, deployment: deployment, cluster: cluster.service, records: records, find: opts.Secret},
	}, nil
}

// runner runs the steps of a run, which holds the lock if it needs one.
func (c *Conductor) runner(run string, l *deploymentLock) *containerRunner {
	return &containerRunner{
		requests: stages.Requests{Run: run, Inputs: c.inputs},
		mounts: mounts{
			client: c.opts.Client, cluster: c.service, environment: c.inputs.Environment, release: c.opts.ReleaseDir,
			manifests: c.opts.Images.Manifests, tlsKey: c.opts.TLSKey, given: c.opts.UserSecrets, access: c.access, account: c.account,
		},
		deployment: c.Cluster.deployment, lock: l,
	}
}

// Steps are the names, "stage/name", of the steps of a workflow on this deployment.
func (c *Conductor) Steps(w stages.Workflow) ([]string, error) {
	nodes, err := stages.Nodes(w, c.inputs)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.String()
	}
	return out, nil
}

// Ping checks that the engine responds.
func (c *Conductor) Ping(ctx context.Context) error {
	_, err := c.opts.Client.Version(ctx)
	return err
}
