package orchestrator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/diagnosis"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	defaultDeadline = 10 * time.Minute
	stillEvery      = 10 * time.Second // that nothing happens, until the cause is looked for
	lookLimit       = 20 * time.Second // at Argo CD's pods, also after the time is up
)

func runSync(ctx context.Context, env *step.Env, in contract.AppsInput) (contract.Apps, error) {
	if len(in.Apps) == 0 {
		return contract.Apps{}, badSet(errors.New("no app is expected: a platform without apps is never installed"))
	}
	r, c, err := env.Open()
	if err != nil {
		return contract.Apps{}, err
	}
	if err := c.HideSecrets(ctx, env.Deployment, env.Redact); err != nil {
		return contract.Apps{}, err
	}
	root, err := rootApplication(env.Deployment, r, in)
	if err != nil {
		return contract.Apps{}, err
	}
	applied, err := c.Apply(ctx, []*unstructured.Unstructured{root}, alone())
	if err != nil {
		return contract.Apps{}, err
	}
	if !c.Plan.Waits() {
		return contract.Apps{Revision: in.Revision}, nil
	}
	env.Logger.Info("root application", "change", applied[0].Change, "revision", in.Revision)
	deadline := time.Duration(in.Deadline) * time.Second
	if deadline <= 0 {
		deadline = defaultDeadline
	}
	if in.Revision == "" {
		if in.Revision, err = resolve(ctx, c, in, deadline); err != nil {
			return contract.Apps{}, err
		}
		env.Progress("%s is at %s", in.Target, argo.Short(in.Revision))
	}
	root.SetAnnotations(nil) // a refresh is asked for once
	out, err := settled(ctx, c, root, func() *waiter {
		return &waiter{
			client: c, env: env, pause: kube.Poll,
			tracker: &argo.Tracker{Namespace: in.Namespace, Root: RootApp, Revision: in.Revision, Expected: in.Apps, Deadline: deadline},
		}
	})
	out.Revision = in.Revision
	if err == nil {
		err = noStrangers(ctx, c, env.Deployment, r, in)
	}
	return out, err
}

// rootApplication is the app of apps at the branch. $ARGOCD_APP_REVISION is
// replaced by the commit that it is at, so that its apps never run ahead of it.
func rootApplication(deployment string, r *platform.Release, in contract.AppsInput) (*unstructured.Unstructured, error) {
	helm := map[string]any{
		"releaseName": RootApp,
		"parameters":  []any{map[string]any{"name": "repository.revision", "value": "$ARGOCD_APP_REVISION", "forceString": true}},
	}
	if in.Values == nil {
		helm["valueFiles"] = []any{RootValues}
	} else {
		values, err := rootValues(r, deployment, *in.Values, repository{Revision: in.Target, URL: in.Repository, Path: in.Path})
		if err != nil {
			return nil, err
		}
		if helm["valuesObject"], err = runtime.DefaultUnstructuredConverter.ToUnstructured(values); err != nil {
			return nil, badTree(fmt.Errorf("encode the values of %s: %w", RootChart, err))
		}
	}
	source := map[string]any{"repoURL": in.Repository, "targetRevision": in.Target, "path": path.Join(in.Path, RootChart), "helm": helm}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "argoproj.io/v1alpha1", "kind": "Application",
		"metadata": map[string]any{
			"name": RootApp, "namespace": in.Namespace,
			"labels": map[string]any{
				kube.ManagedBy:       kube.FieldManager,
				kube.DeploymentLabel: deployment,
			},
			"finalizers": []any{argo.CascadeFinalizer},
		},
		"spec": map[string]any{
			"project":              rootProject,
			"source":               source,
			"destination":          map[string]any{"server": argo.InCluster, "namespace": in.Namespace},
			"revisionHistoryLimit": int64(5),
			"syncPolicy":           argo.SyncPolicy(),
		},
	}}, nil
}

// waiter polls the Applications until all are done, the set is wrong, or one has passed
// its deadline. A failing pod does not end the wait early, since Argo CD may recover; it
// only decides the error code.
type waiter struct {
	client  *kube.Client
	env     *step.Env
	tracker *argo.Tracker
	pause   time.Duration
	seen    contract.Apps // as of the last poll
}

func (w *waiter) wait(ctx context.Context) (contract.Apps, error) {
	begun, said := time.Now(), ""
	still := stillness{since: begun}
	quiet := *w.client
	quiet.Progress = nil // each line is printed as soon as it is another one
	var failed error
	// A call has ctx, not the context of one attempt: it retries by itself, and fails after an outage
	// of two minutes. ends returns what a failed call ends the wait with.
	ends := func(line string, err error) (bool, string, error) {
		if err == nil || ctx.Err() != nil {
			return false, line, err
		}
		failed = err
		return true, line, nil
	}
	err := quiet.WaitFor(ctx, "the apps", w.pause, func(context.Context) (bool, string, error) {
		all, err := argo.List(ctx, w.client, w.tracker.Namespace)
		if err != nil {
			return ends("", err)
		}
		w.seen = report(all, w.tracker)
		now := time.Now()
		v := w.tracker.Update(now, all)
		line := v.Line + still.why(now, v, func() string {
			cause, _ := gatherFacts(ctx, w.client, w.env, all, v.First).App(v.First)
			return cause
		})
		if line != said {
			w.env.Progress("%s (%s)", line, now.Sub(begun).Round(time.Second))
			said = line
		}
		switch {
		case v.Done:
			return true, line, nil
		case len(v.Missing)+len(v.Unexpected) > 0:
			failed = wrongSet(v)
		case v.Late != nil:
			failed = w.late(ctx, v, all)
		default:
			return ends(line, w.act(ctx, v.Actions))
		}
		return true, line, nil
	})
	if err = cmp.Or(failed, err); err != nil {
		w.keep()
		return contract.Apps{}, err
	}
	return w.seen, nil
}

// stillness is a wait in which nothing happens.
type stillness struct {
	line          string // what is waited for
	since, looked time.Time
	cause         string
}

// why is ": " and what keeps the first app, found by look, once nothing has happened for
// stillEvery; it looks again as often.
func (s *stillness) why(now time.Time, v argo.Verdict, look func() string) string {
	if v.Line != s.line {
		*s = stillness{line: v.Line, since: now}
	}
	if v.First != "" && now.Sub(s.since) >= stillEvery && now.Sub(s.looked) >= stillEvery {
		s.cause, s.looked = look(), now
	}
	if s.cause == "" {
		return ""
	}
	return ": " + s.cause
}

// seenFile holds the apps as they were last seen by a step that failed, for the
// run's report.
const seenFile = "apps.json"

// keep writes the apps as they were last seen to seenFile. The step has failed already, so
// an error of keep is only logged.
func (w *waiter) keep() {
	data, err := json.Marshal(w.seen)
	if err == nil {
		err = w.env.Keep(seenFile, data)
	}
	if err != nil {
		w.env.Logger.Warn("the report will not show the apps", "error", err)
	}
}

// act does what the tracker asks for. It ignores Applications that no longer exist.
func (w *waiter) act(ctx context.Context, actions []argo.Action) error {
	for _, a := range actions {
		w.env.Logger.Info("argo cd is asked", "app", a.App.Name, "to", a.Why)
		c := w.client
		if a.Refresh {
			c = c.Asking()
		} else if c.Plan != nil { // what comes next waits for what Argo CD would do
			return fmt.Errorf("%s: %s: %w", a.App.Name, a.Why, plan.ErrChange)
		}
		if err := c.Patch(ctx, "patch the Application "+a.App.Name, argo.Applications(), a.App.Namespace, a.App.Name, a.Patch); err != nil {
			return err
		}
	}
	return nil
}

func wrongSet(v argo.Verdict) error {
	var parts []string
	if len(v.Missing) > 0 {
		parts = append(parts, "the GitOps tree brings no app "+strings.Join(v.Missing, ", "))
	}
	if len(v.Unexpected) > 0 {
		parts = append(parts, "it brings "+strings.Join(v.Unexpected, ", ")+", which platform.yaml does not name or which is off")
	}
	return badSet(errors.New(strings.Join(parts, "; ")))
}

func badSet(err error) error {
	return &fault.Fault{
		Code: CodeSet, Class: fault.Step, Op: "compare the apps with the platform release", Err: err,
		Fix: "make components in platform.yaml and the chart " + RootChart + " agree, then run the same command again",
	}
}

// late is the fault for an Application whose deadline has passed; all are all of them.
func (w *waiter) late(ctx context.Context, v argo.Verdict, all []argo.Application) error {
	a := *v.Late
	op := fmt.Sprintf("bring the app %s to %s within %s", a.Name, argo.Short(w.tracker.Revision), w.tracker.Deadline)
	inspect := "slipway toolchain -- kubectl get application -n " + fault.Quote(w.tracker.Namespace) + " " + fault.Quote(a.Name) + " -o yaml"
	if v.Stale {
		return &fault.Fault{
			Code: argo.CodeStale, Class: fault.Timeout, Op: op,
			Fix: "look at Argo CD's log: slipway toolchain -- kubectl logs -n " + fault.Quote(w.tracker.Namespace) + " -l " + argo.Controller,
			Err: fmt.Errorf("app %s: Argo CD has not looked at it since it was asked to%s (last seen: sync %s, health %s)", a.Name, w.controller(ctx), a.Sync, a.Health),
		}
	}
	facts := gatherFacts(ctx, w.client, w.env, all, a.Name)
	cause, known := facts.App(a.Name)
	for i := range w.seen.Apps {
		w.seen.Apps[i].Cause, _ = facts.App(w.seen.Apps[i].Name)
	}
	cause = cmp.Or(cause, v.Why)
	if v.Replaced != "" {
		cause = fmt.Sprintf("branch %s is at %s now: another run or somebody's push has replaced %s, which this run waited for",
			contract.Branch, argo.Short(v.Replaced), argo.Short(w.tracker.Revision))
		known = false
	}
	f := &fault.Fault{
		Code: argo.CodeLate, Class: fault.Timeout, Op: op, Fix: "look at it: " + inspect + "; correct it, then run the same command again",
		Err: fmt.Errorf("app %s: %s (sync %s, health %s)", a.Name, cause, a.Sync, a.Health),
	}
	if len(v.Absent) > 0 {
		f.Err = fmt.Errorf("%w; these never appeared: %s", f.Err, strings.Join(v.Absent, ", "))
	}
	if known {
		f.Code, f.Class = CodeFailed, fault.Step
		f.Fix = "correct the app, then run the same command again; to look at it: " + inspect
	}
	return f
}

// gatherFacts reads the state of the cluster behind apps, first of all behind the one called
// name ("" for none in particular). It has its own time limit and works even after ctx has
// ended. What cannot be read is only logged.
func gatherFacts(ctx context.Context, client *kube.Client, env *step.Env, apps []argo.Application, name string) *diagnosis.Facts {
	facts := diagnosis.Gather(context.WithoutCancel(ctx), client, diagnosis.Scope{Apps: apps, App: name, Clean: env.Clean, Deployment: env.Deployment, Hide: env.Redact})
	for _, gap := range facts.Gaps {
		env.Logger.Info("look for the cause", "not looked at", gap)
	}
	return facts
}

// controller describes the trouble of Argo CD's controller, with a leading colon; empty if
// its pods are healthy.
func (w *waiter) controller(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookLimit)
	defer cancel()
	for _, selector := range []string{argo.Controller, argo.RepoServer, argo.Redis} {
		found, err := w.client.Workloads(ctx, w.tracker.Namespace, selector)
		if err == nil && len(found) == 0 && selector != argo.Redis { // which may be elsewhere
			return ": there is no pod with the label " + selector
		}
		for _, o := range found {
			if why := readiness.PodCause(ctx, w.client, w.tracker.Namespace, selector, o.GetName()); why != "" {
				return ": " + why
			}
		}
	}
	return ""
}

// report is the outcome, the root left out, by wave and name.
func report(all []argo.Application, t *argo.Tracker) contract.Apps {
	var out contract.Apps
	for _, a := range all {
		if slices.Contains(t.Expected, a.Name) && a.Namespace == t.Namespace {
			out.Apps = append(out.Apps, appOf(a))
		}
	}
	sortApps(out.Apps)
	return out
}

func appOf(a argo.Application) contract.App {
	return contract.App{Name: a.Name, Namespace: a.Namespace, Wave: a.Wave, Sync: a.Sync, Health: a.Health, Revision: a.Revision}
}

func sortApps(apps []contract.App) {
	slices.SortFunc(apps, func(a, b contract.App) int {
		return cmp.Or(a.Wave-b.Wave, strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
}

// resolve asks Argo CD which commit the root Application's branch or tag in a repository
// of the user's is at. Nobody but Argo CD needs to reach that repository.
func resolve(ctx context.Context, c *kube.Client, in contract.AppsInput, deadline time.Duration) (string, error) {
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := c.Asking().Patch(limited, "refresh the Application "+RootApp, argo.Applications(), in.Namespace, RootApp, argo.HardRefresh())
	if err != nil {
		return "", err
	}
	revision := ""
	err = c.WaitFor(limited, "Argo CD to read "+in.Repository, kube.Poll, func(ctx context.Context) (bool, string, error) {
		app, err := argo.Get(ctx, c, in.Namespace, RootApp)
		if err != nil {
			return false, "", err
		}
		if app.Refreshing || app.Outdated || app.Revision == "" || len(app.Conditions) > 0 && app.Sync == "Unknown" {
			return false, app.Explain(), nil
		}
		revision = app.Revision
		return true, "", nil
	})
	if fault.ClassOf(err) == fault.Timeout {
		err = &fault.Fault{
			Code: gitserver.CodeRepository, Class: fault.Step, Op: fmt.Sprintf("read %s of %s", in.Target, in.Repository), Err: err,
			Fix: "correct git in the configuration, or give Argo CD access to the server, then run the same command again",
		}
	}
	return revision, err
}
