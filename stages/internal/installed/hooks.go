package installed

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// Pack makes a small text of what a chart renders to.
func Pack(text string) (string, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	err = cmp.Or(err, w.Close())
	return out.String(), err
}

// Unpack is the text that Pack has packed.
func Unpack(packed string) (string, error) {
	r, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return "", err
	}
	text, err := bounded.Read(r, bounded.Packed)
	return string(text), err
}

// Rendered is what a chart renders to.
type Rendered struct {
	Objects []*unstructured.Unstructured
	Hooks   []Hook // but for tests, in the order in which they run
}

// Hook is a hook of a chart.
type Hook struct {
	*release.Hook
	Objects []*unstructured.Unstructured
}

// Parse reads what Render has returned.
func Parse(text string) (out Rendered, err error) {
	hooks, parts, err := releaseutil.SortManifests(map[string]string{"": text}, nil, releaseutil.InstallOrder)
	if err != nil {
		return out, err
	}
	for _, p := range parts {
		objs, err := kube.DecodeRendered([]byte(p.Content))
		if err != nil {
			return out, err
		}
		out.Objects = append(out.Objects, objs...)
	}
	slices.SortStableFunc(hooks, func(a, b *release.Hook) int { return cmp.Or(a.Weight-b.Weight, strings.Compare(a.Name, b.Name)) })
	for _, h := range hooks {
		if slices.Contains(h.Events, release.HookTest) { // nothing runs it, whatever it has
			continue
		}
		objs, err := kube.DecodeRendered([]byte(h.Manifest))
		if err != nil {
			return out, err
		}
		out.Hooks = append(out.Hooks, Hook{h, objs})
	}
	return out, nil
}

// Text is what hooks make, for Parse.
func Text(hooks []Hook) (string, error) {
	var out strings.Builder
	for _, h := range hooks {
		for _, o := range h.Objects {
			text, err := yaml.Marshal(o.Object)
			if err != nil {
				return "", fmt.Errorf("encode %s: %w", kube.MemberOf(o), err)
			}
			fmt.Fprintf(&out, "---\n%s", text)
		}
	}
	return out.String(), nil
}

// On reports whether the hook is one of an event.
func (h Hook) On(event release.HookEvent) bool { return slices.Contains(h.Events, event) }

// Runner runs the hooks of a deployment's chart.
type Runner struct {
	Client     *kube.Client
	Deployment string
	// Job waits until a Job of a hook has completed.
	Job func(ctx context.Context, namespace, name string) error
	// Limit is how long each hook may take; 0: as long as ctx.
	Limit time.Duration
}

// Run runs the hooks of an event, one after the other, as Helm does: it makes the objects of each,
// waits until its Jobs and pods have completed, and deletes what the hook's policy says. Objects
// that are to be deleted are the deployment's.
func (r Runner) Run(ctx context.Context, hooks []Hook, event release.HookEvent) error {
	var done []Hook
	for _, h := range hooks {
		if !h.On(event) {
			continue
		}
		if len(h.DeletePolicies) == 0 || slices.Contains(h.DeletePolicies, release.HookBeforeHookCreation) {
			if err := r.remove(ctx, h); err != nil {
				return err
			}
		}
		if err := r.make(ctx, h); err != nil {
			if slices.Contains(h.DeletePolicies, release.HookFailed) {
				err = errors.Join(err, r.remove(ctx, h))
			}
			return errors.Join(err, r.succeeded(ctx, done))
		}
		done = append(done, h)
	}
	return r.succeeded(ctx, done)
}

// make makes the objects of a hook and waits for what they do. Nothing of somebody else's is
// overwritten: the hook's policy would have it deleted afterwards.
func (r Runner) make(ctx context.Context, h Hook) error {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	for _, o := range h.Objects {
		live, err := r.Client.Live(ctx, kube.MemberOf(o))
		if err != nil {
			return err
		}
		if live != nil && !kube.Ours(live, r.Deployment) {
			return foreign(h, live)
		}
	}
	if _, err := r.Client.Apply(ctx, h.Objects, kube.ApplyOptions{}); err != nil {
		return err
	}
	for _, o := range h.Objects {
		var err error
		switch o.GetKind() {
		case "Job":
			err = r.Job(ctx, o.GetNamespace(), o.GetName())
		case "Pod":
			err = readiness.WaitPodDone(ctx, r.Client, o.GetNamespace(), o.GetName())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r Runner) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if r.Limit == 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, r.Limit)
}

func foreign(h Hook, live *unstructured.Unstructured) error {
	return &fault.Fault{
		Code: kube.CodeForeign, Class: fault.Step, Op: "run the hook " + h.Name,
		Err: fmt.Errorf("%s exists and is not the deployment's; it was not changed", kube.MemberOf(live)),
		Fix: "remove it, or have the chart name its own otherwise, then run the same command again",
	}
}

// succeeded deletes what hooks that have succeeded made, if their policy says so.
func (r Runner) succeeded(ctx context.Context, hooks []Hook) error {
	for _, h := range slices.Backward(hooks) {
		if slices.Contains(h.DeletePolicies, release.HookSucceeded) {
			if err := r.remove(ctx, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove deletes what a hook made, and waits until it is gone.
func (r Runner) remove(ctx context.Context, h Hook) error {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	for _, o := range h.Objects {
		m := kube.MemberOf(o)
		asked, err := r.Client.DeleteOurs(ctx, m, r.Deployment, metav1.DeletePropagationBackground)
		if err != nil {
			return err
		}
		if !asked {
			continue
		}
		err = r.Client.WaitFor(ctx, m.String()+" to be gone", kube.Poll, func(ctx context.Context) (bool, string, error) {
			live, err := r.Client.Live(ctx, m)
			return err == nil && live == nil, "it is still being deleted", err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
