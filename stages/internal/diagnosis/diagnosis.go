// Package diagnosis explains in one sentence why something failed in a cluster, and
// lists what else is unhealthy. It reads the Applications of Argo CD, pods, claims,
// Jobs, nodes, warnings and the logs of failing containers. It never reads a Secret,
// changes nothing, and takes at most twenty seconds.
package diagnosis

import (
	"bytes"
	"context"
	"time"

	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/internal/state"
	"github.com/slipway-sh/slipway/stages/step"
)

// How long the parts of a diagnosis may take: 19 seconds in total.
const (
	listLimit   = 10 * time.Second
	logLimit    = 6 * time.Second
	healthLimit = 3 * time.Second
)

// Register adds the code of the stage's step to r.
func Register(r *step.Registry) {
	step.Register(r, contract.DiagnosisStep(), step.Once(run))
}

// run never fails: that a cluster cannot be read is a diagnosis, too.
func run(ctx context.Context, env *step.Env, in contract.DiagnosisInput) (contract.Diagnosis, error) {
	d := collect(ctx, env, in)
	report(ctx, env, in, d)
	for _, gap := range d.Gaps {
		env.Logger.Warn("not looked at", "what", gap)
	}
	env.Progress("%s", d.Cause)
	var text bytes.Buffer
	err := d.Text(&text)
	if err == nil {
		err = env.Keep(textFile, text.Bytes())
	}
	if err != nil {
		env.Logger.Warn("the report will not hold the diagnosis as text", "error", err)
	}
	return *d, nil
}

// report writes into the cluster that the install failed, and why.
func report(ctx context.Context, env *step.Env, in contract.DiagnosisInput, d *contract.Diagnosis) {
	client, err := kube.Connect(env.Kubeconfig, nil)
	if err != nil || len(in.Failed) == 0 || in.Refused {
		return // there is no cluster, or nothing failed, or nothing has changed
	}
	limited, cancel := context.WithTimeout(ctx, tellLimit)
	defer cancel()
	switch is, err := isOn(limited, env, client); {
	case err != nil:
		env.Logger.Warn("the cluster does not show that the run failed", "error", err)
		return
	case !is:
		return
	}
	message := in.Failed[0].String() + ": " + in.Failed[0].Error
	if d.Known {
		message = d.Cause
	}
	client.WriteProgress(limited, env.Logger, env.Deployment, env.Run, contract.Failure, env.Clean(readiness.OneLine(message)))
}

// isOn reports whether the deployment is on an existing cluster.
func isOn(ctx context.Context, env *step.Env, c *kube.Client) (bool, error) {
	if !env.Existing {
		return true, nil
	}
	s, err := env.Store(ctx)
	if err != nil {
		return false, err
	}
	known, err := state.ClusterOf(ctx, s)
	if err != nil || known == nil {
		return false, err
	}
	uid, err := c.UID(ctx)
	return uid == known.UID, err
}

const tellLimit = 5 * time.Second

// collect returns Collect for a cluster whose access file may not be there.
func collect(ctx context.Context, env *step.Env, in contract.DiagnosisInput) *contract.Diagnosis {
	scope := Scope{Failed: in.Failed, Namespaces: in.Namespaces, Argo: in.Argo, Health: in.Health, Clean: env.Clean, Deployment: env.Deployment, Hide: env.Redact}
	client, err := kube.Connect(env.Kubeconfig, nil)
	if err != nil {
		f := &Facts{Scope: scope, Now: time.Now().UTC()}
		f.gap("the cluster", err)
		return f.Diagnose()
	}
	return Collect(ctx, client, scope)
}

// textFile holds the diagnosis for people, beside the step's log.
const textFile = "diagnosis.txt"

// Scope is what a diagnosis covers. The zero value is the whole cluster.
type Scope struct {
	// Apps are the Applications if the caller has just read them; nil: they are read.
	Apps []argo.Application
	// App is the Application in question, whose findings come first. Empty: none.
	App string
	// Failed are the steps that failed. Findings that their errors mention come first.
	Failed []contract.FailedStep
	// Namespaces are included besides those of Kubernetes, Slipway and the apps, the
	// most relevant first. Empty: all.
	Namespaces []string
	// Argo is the namespace of Argo CD: Applications elsewhere are not the platform's. Empty: all.
	Argo string
	// Health is the URL at which the cluster's node reports its health. It is queried
	// if the API does not respond. Empty: there is none.
	Health string
	// Clean removes known secrets from a text, in addition to what looks like one.
	// Nil: nothing.
	Clean func(string) string
	// Hide gets what is secret in the Secrets of Deployment, for Clean to remove. Nil: these are
	// not read.
	Hide       func(string)
	Deployment string
}

// Collect reads the cluster and returns a diagnosis. It does not fail: what cannot be
// read is listed in Gaps, and if the API does not respond, that is the cause.
func Collect(ctx context.Context, client *kube.Client, scope Scope) *contract.Diagnosis {
	return Gather(ctx, client, scope).Diagnose()
}

func (s Scope) clean(text string) string {
	if s.Clean != nil {
		text = s.Clean(text)
	}
	return redact.External(text)
}
