// Package diagnosis says in one sentence why something failed in a cluster, and
// lists what else is not well: it reads the Applications of Argo CD, pods, claims,
// Jobs, nodes, warnings and the logs of containers that fail. It never reads a
// Secret, changes nothing, and takes twenty seconds at most.
package diagnosis

import (
	"bytes"
	"context"
	"time"

	"github.com/slipway-sh/slipway/pipeline/redact"
	"github.com/slipway-sh/slipway/stages/argo"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// How long the parts of a diagnosis may take: 19 seconds together.
const (
	listLimit   = 10 * time.Second
	logLimit    = 6 * time.Second
	healthLimit = 3 * time.Second
)

// Register adds the code of the stage's step to r.
func Register(r *step.Registry) {
	step.Register(r, contract.DiagnosisStep(), run)
}

// run never fails: a cluster that cannot be looked at is a diagnosis too.
func run(ctx context.Context, env *step.Env, in contract.DiagnosisInput) (contract.Diagnosis, error) {
	d := collect(ctx, env, in)
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

// collect is Collect for a cluster whose access file may not be there.
func collect(ctx context.Context, env *step.Env, in contract.DiagnosisInput) *contract.Diagnosis {
	client, err := kube.Connect(env.Kubeconfig, nil)
	if err != nil {
		return &contract.Diagnosis{
			Cause: "no cause was found in the cluster; " + env.Clean(kube.OneLine(err.Error())), At: time.Now().UTC(),
			Findings: []contract.Finding{}, Apps: []contract.App{}, Events: []contract.Event{}, Gaps: []string{"the cluster"},
		}
	}
	return Collect(ctx, client, Scope{Failed: in.Failed, Namespaces: in.Namespaces, Health: in.Health, Clean: env.Clean})
}

// textFile holds the diagnosis for people, beside the step's log.
const textFile = "diagnosis.txt"

// Scope says what a diagnosis is about. The zero value is the whole cluster.
type Scope struct {
	// Apps are the Applications as they were read just now; nil: they are read.
	Apps []argo.Application
	// App is the Application that is asked about: what is of it comes first.
	// Empty: none in particular.
	App string
	// Failed are the steps that failed: what their errors name comes first.
	Failed []contract.FailedStep
	// Namespaces are looked at beside those of Kubernetes, Slipway and the apps,
	// the more likely first. Empty: all.
	Namespaces []string
	// Health is the URL at which the cluster's node says how it is; it is asked
	// when the API does not answer. Empty: there is none.
	Health string
	// Clean removes what must not be shown from a text, beside what looks like a
	// secret. Nil: nothing.
	Clean func(string) string
}

// Collect looks at the cluster and says what it found. What cannot be looked at
// is in Gaps, and an API that does not answer is the cause: there is no error.
func Collect(ctx context.Context, client *kube.Client, scope Scope) *contract.Diagnosis {
	return Gather(ctx, client, scope).Diagnose()
}

// clean removes secrets from a text.
func (s Scope) clean(text string) string {
	if s.Clean != nil {
		text = s.Clean(text)
	}
	return redact.Text(text)
}
