// Package helm reads the records of Helm releases in a cluster.
package helm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/pipeline/lock"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// Connect connects Helm to the cluster of a kubeconfig, a path, for the releases of a
// namespace. What Helm says goes to log. It changes nothing once it is not certain any more
// that the step whose context ctx is has the deployment's lock: see lock.Guard; and nothing at all
// where p is not nil.
func Connect(ctx context.Context, p *plan.Step, kubeconfig, namespace string, log *slog.Logger) (*action.Configuration, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	flags.WrapConfigFn = func(c *rest.Config) *rest.Config {
		c.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(r *http.Request) (*http.Response, error) { // whose own context is Helm's
				if r.Method != http.MethodGet && r.Method != http.MethodHead {
					if p != nil {
						return nil, plan.Later("%s %s", r.Method, r.URL.Path)
					}
					if err := lock.Guard(ctx); err != nil {
						return nil, err
					}
				}
				return next.RoundTrip(r)
			})
		})
		return c
	}
	config := new(action.Configuration)
	debug := func(format string, args ...any) { log.Debug("helm: " + fmt.Sprintf(format, args...)) }
	if err := config.Init(flags, namespace, "secret", debug); err != nil {
		return nil, err
	}
	return config, nil
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// History lists the records of a release; none when there is no release.
func History(ctx context.Context, c *kube.Client, config *action.Configuration, name string) ([]*release.Release, error) {
	return kube.Retry(ctx, c, "read the Helm release "+name, func(context.Context) ([]*release.Release, error) {
		out, err := config.Releases.History(name)
		if errors.Is(err, driver.ErrReleaseNotFound) {
			return nil, nil
		}
		return out, err
	})
}
