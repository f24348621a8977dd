package conductor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"dagger.io/dagger"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/report"
	"github.com/slipway-sh/slipway/stages/contract"
)

// DeploymentStatus is what `slipway status` shows.
type DeploymentStatus struct {
	Deployment string         `json:"deployment"`
	Provider   string         `json:"provider"`
	Platform   string         `json:"platform"` // version of the release
	Run        string         `json:"run"`      // id of the last run
	Workflow   string         `json:"workflow"` // of the last run
	Outcome    report.Outcome `json:"outcome"`  // of the last run
	Steps      []report.Step  `json:"steps"`    // of the last run
	Apps       []report.App   `json:"apps"`     // as they are now
	Links      []report.Link  `json:"links,omitempty"`
	// Elsewhere tells that the cluster runs on another engine, where the state
	// is in a bucket: Apps are then as the last run saw them.
	Elsewhere bool `json:"elsewhere,omitempty"`
}

// Text writes the status for a terminal.
func (s *DeploymentStatus) Text(w io.Writer) error {
	run := report.Run{
		ID: s.Run, Workflow: s.Workflow, Deployment: s.Deployment, Provider: s.Provider, Outcome: s.Outcome,
		Platform: report.Platform{Name: "platform", Version: s.Platform}, Steps: s.Steps, Apps: s.Apps, Links: s.Links,
	}
	err := run.Summary(w)
	if err == nil && s.Elsewhere {
		_, err = fmt.Fprintln(w, "\nThe cluster runs on another engine: the applications are as the last run saw them.")
	}
	return err
}

// stored reads the deployment's state.
func (c *Conductor) stored(ctx context.Context) (*contract.Stored, error) {
	const at = "/slipway/stored.json"
	var s contract.Stored
	if err := c.ask(ctx, []string{"slipway", "state", "show", at}, at, &s); err != nil {
		return nil, fmt.Errorf("read the deployment's state: %w", err)
	}
	return &s, nil
}

// Known reports whether there is a record of the deployment, also of one that was
// removed since.
func (c *Conductor) Known(ctx context.Context) (bool, error) {
	s, err := c.stored(ctx)
	if err != nil {
		return false, err
	}
	return s.Record != nil || s.Cluster, nil
}

// notThere is the fault of a question about a deployment that does not exist.
func (c *Conductor) notThere(what string) error {
	return &fault.Fault{
		Code: CodeNotThere, Class: fault.Usage, Op: what,
		Fix: "install it first: slipway install, or dagger call install; or name another one with --name",
		Err: fmt.Errorf("deployment %s is not installed", c.opts.Config.Global.Name),
	}
}

// Status shows the last run and the applications as they are now. A deployment
// that is not there is a fault of class Usage.
func (c *Conductor) Status(ctx context.Context) (*DeploymentStatus, error) {
	s, err := c.stored(ctx)
	if err != nil {
		return nil, err
	}
	out, err := c.statusOf(s)
	if err != nil {
		return nil, err
	}
	if c.cluster != nil && !s.Here {
		out.Elsewhere = true
		if s.Record.Apps != nil {
			out.Apps = s.Record.Apps
		}
		return out, nil
	}
	c.run = out.Run
	err = c.withCluster(ctx, func(ctx context.Context) error {
		var apps contract.Apps
		if _, err := c.exec(ctx, contract.StatusStep().Spec, contract.Nothing{}, &apps); err != nil {
			return err
		}
		out.Apps = appsOf(apps)
		return nil
	})
	return out, err
}

// statusOf is the status as far as the deployment's state knows it.
func (c *Conductor) statusOf(s *contract.Stored) (*DeploymentStatus, error) {
	if s.Record == nil || !s.Cluster {
		return nil, c.notThere("show the status")
	}
	return &DeploymentStatus{
		Deployment: c.opts.Config.Global.Name, Provider: s.Record.Provider, Platform: s.Record.Platform.Version,
		Run: s.Record.ID, Workflow: s.Record.Workflow, Outcome: s.Record.Outcome, Steps: s.Record.Steps,
		Apps: []report.App{}, Links: s.Record.Links,
	}, nil
}

// stopLimit is how long the cluster's service may take to end; it does so in ten
// seconds.
const stopLimit = time.Minute

// withCluster calls do while the cluster's service runs.
func (c *Conductor) withCluster(ctx context.Context, do func(context.Context) error) error {
	if c.cluster == nil {
		return do(ctx)
	}
	if err := c.cluster.Start(ctx); err != nil {
		return err
	}
	return errors.Join(do(ctx), c.stop(ctx))
}

// stop ends the cluster's service, also after ctx has ended, in stopLimit at most.
func (c *Conductor) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	return c.cluster.Stop(ctx)
}

// Report copies the directory of a run, the last one if run is empty, to the
// directory out of this machine, with report.html and all the other files that
// are made from its record, and returns the run's id.
func (c *Conductor) Report(ctx context.Context, run, out string) (string, error) {
	const at = "/slipway/report"
	e := containers.Exec{Args: []string{"slipway", "state", "report", at, run}, Result: at + ".id"}
	done, dir, err := c.deployment.ExecDirectory(ctx, e, at)
	if err != nil {
		return "", err
	}
	err = ended(e.Args, done)
	if errors.Is(err, &fault.Fault{Code: CodeNotThere}) {
		return "", &fault.Fault{Code: CodeNotThere, Class: fault.Usage, Op: "read the run's record",
			Fix: "run something first, or name another deployment with --name",
			Err: errors.New(containers.Complaint(done.Stderr))}
	} else if err != nil {
		return "", fmt.Errorf("write the report: %w", err)
	}
	if _, err := dir.Export(ctx, out, dagger.DirectoryExportOpts{Wipe: false}); err != nil {
		return "", fmt.Errorf("write the report: %w", err)
	}
	return strings.TrimSpace(string(done.Result)), nil
}

// Kubeconfig is the administrator's access to the cluster; server replaces the
// API's URL in it unless it is empty.
func (c *Conductor) Kubeconfig(ctx context.Context, server string) (string, error) {
	s, err := c.stored(ctx)
	if err != nil {
		return "", err
	}
	if !s.Cluster {
		return "", c.notThere("read the kubeconfig")
	}
	// As a file: what a container prints is in the engine's log, and this is the
	// administrator's key.
	const at = "/slipway/kubeconfig"
	done, err := c.deployment.Exec(ctx, containers.Exec{Args: []string{"slipway", "state", "kubeconfig", at}, Result: at})
	if err == nil {
		err = ended([]string{"slipway", "state", "kubeconfig"}, done)
	}
	switch {
	case err != nil:
		return "", err
	case done.Result == nil:
		return "", c.notThere("read the kubeconfig")
	case server == "":
		return string(done.Result), nil
	}
	return withServer(string(done.Result), server)
}

// withServer replaces the server of every cluster in a kubeconfig.
func withServer(kubeconfig, server string) (string, error) {
	var doc map[string]any
	if err := yaml.Unmarshal([]byte(kubeconfig), &doc); err != nil {
		return "", fmt.Errorf("decode the kubeconfig: %w", err)
	}
	clusters, _ := doc["clusters"].([]any)
	for _, entry := range clusters {
		named, _ := entry.(map[string]any)
		if cluster, ok := named["cluster"].(map[string]any); ok {
			cluster["server"] = server
		}
	}
	b, err := yaml.Marshal(doc)
	return string(b), err
}

// toolchain is the container in which every step runs, connected to the cluster,
// which runs.
func (c *Conductor) toolchain(ctx context.Context) (*dagger.Container, error) {
	const what = "open the toolchain"
	var s *dagger.Service
	var err error
	if c.cluster != nil {
		s, err = c.up(ctx, what)
	} else {
		err = c.installed(ctx, what)
	}
	if err != nil {
		return nil, err
	}
	return c.deployment.Toolchain(s).WithEnvVariable("KUBECONFIG", contract.KubeconfigFile), nil
}

// ToolchainID is the Dagger id of the toolchain container.
func (c *Conductor) ToolchainID(ctx context.Context) (string, error) {
	ctr, err := c.toolchain(ctx)
	if err != nil {
		return "", err
	}
	id, err := ctr.ID(ctx)
	return string(id), err
}

// Shell runs a command in the toolchain and returns what it printed.
func (c *Conductor) Shell(ctx context.Context, args []string) (string, error) {
	ctr, err := c.toolchain(ctx)
	if err != nil {
		return "", err
	}
	return containers.Output(ctx, ctr, args)
}
