// Package installed knows what a deployment has in a cluster: which release of the platform, which one may
// follow it, and what components are made of. It takes that out again, and nothing else: components as a
// release said they go, objects by what shows whose they are, and what holds them up.
package installed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// The codes of this package's faults.
const (
	// CodeNotOver: a release cannot be installed over the installed release, or only by an
	// upgrade, because it changes data.
	CodeNotOver fault.Code = "UPG-001"
	// CodeUnfinished: the last upgrade, or the last rollback, has not come to its end.
	CodeUnfinished fault.Code = "UPG-002"
	// CodeStuck: objects do not go, and the release says to report that.
	CodeStuck fault.Code = "INF-035"
	// CodeUnrecorded: there are claims, and no record says whether the release keeps them.
	CodeUnrecorded fault.Code = "INF-036"
)

// afterStrip is how long objects may take once they have no finalizers.
const afterStrip = 30 * time.Second

// Remover removes objects of one deployment.
type Remover struct {
	Client     *kube.Client
	Deployment string
	Argo       string // the namespace of Argo CD; empty: the platform has none
	Rules      platform.Remove
	Log        *slog.Logger
	Progress   func(format string, args ...any)

	// Stripped are the finalizers that were removed: "kind namespace/name: finalizer".
	Stripped []string
}

// Selector selects what Slipway made for the deployment.
func (r *Remover) Selector() string { return kube.DeploymentLabel + "=" + r.Deployment }

// Limit is how long objects may take to go.
func (r *Remover) Limit() time.Duration { return time.Duration(r.Rules.Finalizers.After) }

// Delete asks for the deletion of objects.
func (r *Remover) Delete(ctx context.Context, objs []unstructured.Unstructured) error {
	for i := range objs {
		if err := r.Client.DeleteObject(ctx, &objs[i], metav1.DeletePropagationBackground); err != nil {
			return err
		}
	}
	return nil
}

// Look returns what is left of objects that were deleted.
type Look func(ctx context.Context) ([]unstructured.Unstructured, error)

// Gone waits for deleted objects to be gone. Those that are left after the limit lose their
// finalizers, or end the removal: see platform.Finalizers.
func (r *Remover) Gone(ctx context.Context, what string, look Look) error {
	return r.GoneAfter(ctx, r.Limit(), what, look)
}

// GoneAfter is Gone with a limit of its own.
func (r *Remover) GoneAfter(ctx context.Context, limit time.Duration, what string, look Look) error {
	return r.gone(ctx, limit, what, look, nil)
}

// gone is GoneAfter where other objects may hold up those that are left; nil: none do.
func (r *Remover) gone(ctx context.Context, limit time.Duration, what string, look Look, holding func(ctx context.Context, left []unstructured.Unstructured) ([]unstructured.Unstructured, error)) error {
	wait := func(limit time.Duration) error {
		limited, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		return r.Client.WaitFor(limited, what+" to be gone", kube.Poll, func(ctx context.Context) (bool, string, error) {
			left, err := look(ctx)
			return err == nil && len(left) == 0, kube.Left(left), err
		})
	}
	err := wait(limit)
	if err == nil || ctx.Err() != nil {
		return err
	}
	left, lookErr := look(ctx)
	if lookErr == nil && holding != nil {
		left, lookErr = holding(ctx, left)
	}
	if lookErr != nil {
		return errors.Join(err, lookErr)
	}
	r.Log.Warn("objects do not go by themselves", "error", err)
	if err := r.Strip(ctx, left); err != nil {
		return err
	}
	return wait(afterStrip)
}

// Strip removes the finalizers of those of objs that are being deleted, and notes them: nobody
// answers for them any more. Where the release says to report them, it names them in an error.
func (r *Remover) Strip(ctx context.Context, objs []unstructured.Unstructured) error {
	var reported []string
	for i := range objs {
		o := &objs[i]
		if o.GetDeletionTimestamp() == nil || len(o.GetFinalizers()) == 0 {
			continue
		}
		name := kube.MemberOf(o).String() + ": " + strings.Join(o.GetFinalizers(), ", ")
		if r.Rules.Finalizers.Then == platform.FinalizerReport {
			reported = append(reported, name)
			continue
		}
		r.Progress("removing the finalizers of %s", name)
		if err := r.Client.PatchObject(ctx, "remove the finalizers of "+name, o, map[string]any{"metadata": map[string]any{"finalizers": nil}}); err != nil {
			return err
		}
		if !slices.Contains(r.Stripped, name) {
			r.Stripped = append(r.Stripped, name)
		}
	}
	if len(reported) == 0 {
		return nil
	}
	return &fault.Fault{
		Code: CodeStuck, Class: fault.Step, Op: "remove objects",
		Fix: "do what these finalizers wait for, or remove them (kubectl edit), then run the same command again",
		Err: fmt.Errorf("nobody removes the finalizers of %s", strings.Join(reported, "; ")),
	}
}
