package conductor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Records reads what a deployment's state knows.
type Records struct {
	commands
	name       string         // the deployment's
	user, host string         // who reads
	access     *clusterAccess // nil unless the cluster is there already
	node       bool           // the cluster is a service of Slipway
	inBucket   bool           // the state is
}

func (r *Records) stored(ctx context.Context) (*contract.Stored, error) {
	s, err := query(ctx, r.commands, r.looking(containers.Exec{}), contract.ShowState, contract.Nothing{})
	if err != nil {
		return nil, fmt.Errorf("read the deployment's state: %w", err)
	}
	return s, nil
}

// Known reports whether a run of the deployment has ever had the lock, also before it was removed.
func (r *Records) Known(ctx context.Context) (bool, error) {
	s, err := r.stored(ctx)
	if err != nil {
		return false, err
	}
	return s.Record != nil || s.ID != "" || s.Cluster, nil
}

// Installed is the version of the platform release that was installed to the end. Without
// one the error is a fault of class Usage.
func (r *Records) Installed(ctx context.Context) (string, error) {
	s, err := r.stored(ctx)
	if err != nil {
		return "", err
	}
	return r.installed(s)
}

func (r *Records) installed(s *contract.Stored) (string, error) {
	const what = "find out which release is installed"
	switch {
	case s.Lost:
		return "", r.lost(what, s)
	case s.Platform != "":
		return s.Platform, nil
	case s.Cluster:
		return "", &fault.Fault{
			Code: contract.CodeNotThere, Class: fault.Usage, Op: what, Fix: "complete the install first: slipway install, or dagger call install",
			Err: fmt.Errorf("no install of deployment %s has succeeded yet", r.name),
		}
	}
	return "", r.notThere(what)
}

// notThere is the fault of a question about a deployment that the state does not know.
func (r *Records) notThere(what string) error {
	return &fault.Fault{
		Code: contract.CodeNotThere, Class: fault.Usage, Op: what,
		Fix: "install it first: slipway install, or dagger call install; or name another one with --name",
		Err: fmt.Errorf("deployment %s is not installed", r.name),
	}
}

// Report copies the directory of a run, the last one if run is empty, with all files that are made from
// its record to the directory out of this machine, and returns the run's id.
func (r *Records) Report(ctx context.Context, run, out string) (string, error) {
	const at = "/slipway/report"
	args, err := stateCommand(contract.WriteReport, contract.RecordInput{ID: run, Path: at})
	if err != nil {
		return "", err
	}
	e := containers.Exec{Args: args, Result: contract.ResultFile}
	done, dir, err := r.deployment.ExecDirectory(ctx, e, at)
	if err != nil {
		return "", err
	}
	err = ended(e.Args, done)
	if errors.Is(err, &fault.Fault{Code: contract.CodeNotThere}) {
		return "", &fault.Fault{Code: contract.CodeNotThere, Class: fault.Usage, Op: "read the run's record",
			Fix: "slipway runs lists the runs of the deployment; name another one with --name",
			Err: errors.New(containers.Complaint(done.Stderr))}
	} else if err != nil {
		return "", fmt.Errorf("write the report: %w", err)
	}
	if err := r.deployment.Export(ctx, dir, out); err != nil {
		return "", fmt.Errorf("write the report: %w", err)
	}
	err = json.Unmarshal(done.Result, &run)
	return run, err
}

// Kubeconfig is the administrator's access to the cluster; server replaces the
// API's URL in it unless it is empty.
func (r *Records) Kubeconfig(ctx context.Context, server string) (string, error) {
	s, err := r.stored(ctx)
	if err != nil {
		return "", err
	}
	switch {
	case s.Lost && !r.inBucket: // that of a bucket may be on another engine
		return "", r.lost("read the kubeconfig", s)
	case !s.Cluster:
		return "", r.notThere("read the kubeconfig")
	}
	text, err := r.kubeconfig(ctx)
	switch {
	case err != nil:
		return "", err
	case len(text) == 0:
		return "", r.notThere("read the kubeconfig")
	case server == "":
		return string(text), nil
	}
	return withServer(string(text), server, r.access == nil)
}

// kubeconfig is the administrator's access to the cluster; empty where there is none yet.
func (r *Records) kubeconfig(ctx context.Context) ([]byte, error) {
	if r.access != nil {
		secret, err := r.access.secret(ctx)
		if err != nil {
			return nil, err
		}
		text, err := secret.Plaintext(ctx)
		return []byte(text), err
	}
	return query(ctx, r.commands, containers.Exec{}, contract.ReadKubeconfig, contract.Nothing{})
}

// withServer replaces the server of every cluster in a kubeconfig. The certificate of an own
// one is for the name cluster, whatever address it is published on.
func withServer(kubeconfig, server string, own bool) (string, error) {
	var doc map[string]any
	if err := document.CheckPlain([]byte(kubeconfig)); err != nil {
		return "", fmt.Errorf("decode the kubeconfig: %w", err)
	}
	if err := yaml.Unmarshal([]byte(kubeconfig), &doc); err != nil {
		return "", fmt.Errorf("decode the kubeconfig: %w", err)
	}
	clusters, _ := doc["clusters"].([]any)
	for _, entry := range clusters {
		named, _ := entry.(map[string]any)
		if cluster, ok := named["cluster"].(map[string]any); ok {
			cluster["server"] = server
			if own {
				cluster["tls-server-name"] = "cluster"
			}
		}
	}
	b, err := yaml.Marshal(doc)
	return string(b), err
}

// Runs are the runs of the deployment, the oldest first, also from before it was removed.
func (r *Records) Runs(ctx context.Context) ([]contract.RunSummary, error) {
	return query(ctx, r.commands, containers.Exec{}, contract.ListRuns, contract.Nothing{})
}

// Run is one run. One that is not there is a fault of class Usage.
func (r *Records) Run(ctx context.Context, id string) (*contract.RunDetail, error) {
	return query(ctx, r.commands, containers.Exec{}, contract.ShowRun, contract.RecordInput{ID: id})
}

// Unlock takes the lock away from its holder, without force only if that gives no sign of life. It returns
// the record that it wrote.
func (r *Records) Unlock(ctx context.Context, force bool) (*lock.Record, error) {
	out, err := query(ctx, r.commands, containers.Exec{}, contract.BreakLock, contract.UnlockInput{Who: lock.Holder{User: r.user, Host: r.host}, Force: force})
	return &out, err
}

// Backups are the deployment's backups, the oldest first. If the deployment is unknown, the error is a
// fault of class Usage.
func (r *Records) Backups(ctx context.Context) ([]contract.BackupSummary, error) {
	out, err := query(ctx, r.commands, containers.Exec{}, contract.ListBackups, contract.Nothing{})
	if err != nil || len(out) > 0 {
		return out, err
	}
	const what = "list the backups"
	s, err := r.stored(ctx)
	switch {
	case err != nil:
	case s.Record == nil && !s.Cluster:
		err = r.notThere(what)
	}
	return out, err
}

// Backup is one of them, and the files of the release that was installed when it was made.
func (r *Records) Backup(ctx context.Context, id string) (*contract.Backup, fs.FS, error) {
	out, err := query(ctx, r.commands, containers.Exec{}, contract.ReadBackup, contract.RecordInput{ID: id})
	if err != nil {
		return nil, nil, err
	}
	files, err := bounded.Unpack(out.Archive)
	if err != nil {
		return nil, nil, fmt.Errorf("unpack the release of backup %s: %w", id, err)
	}
	return &out.Backup, files, nil
}
