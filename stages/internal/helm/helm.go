// Package helm reads the records of Helm releases in a cluster.
package helm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/slipway-sh/slipway/stages/internal/kube"
)

// Connect connects Helm to the cluster of a kubeconfig, a path, for the releases of a
// namespace. What Helm says goes to log.
func Connect(kubeconfig, namespace string, log *slog.Logger) (*action.Configuration, error) {
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	config := new(action.Configuration)
	debug := func(format string, args ...any) { log.Debug("helm: " + fmt.Sprintf(format, args...)) }
	if err := config.Init(flags, namespace, "secret", debug); err != nil {
		return nil, err
	}
	return config, nil
}

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
