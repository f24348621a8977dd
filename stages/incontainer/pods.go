package incontainer

import (
	"context"
	"io"

	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// awaitPods waits, two minutes at most, until the pods that ran before the local cluster was
// stopped run again, as its node says at url. Those that do not are told to errw, and are no
// error. kubeconfig is a path.
func awaitPods(ctx context.Context, kubeconfig, url string, errw io.Writer) error {
	client, err := kube.Connect(kubeconfig, func(format string, args ...any) { say(errw, "node", format, args...) })
	if err == nil {
		readiness.AwaitPods(ctx, client, url)
	}
	return err
}
