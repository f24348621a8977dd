package kube

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/dryrun"
)

// StatusConfigMap, in SystemNamespace, holds the state of the last install: state,
// message, run and since (RFC 3339).
const StatusConfigMap = "slipway-status"

// ReadProgress returns the state of the last install; empty if the cluster shows none.
func (c *Client) ReadProgress(ctx context.Context) (contract.Progress, error) {
	o, err := c.note(ctx, StatusConfigMap)
	if err != nil || o == nil {
		return "", err
	}
	return contract.Progress(o.Data["state"]), nil
}

// WriteProgress writes the state of an install into the cluster, unless SystemNamespace is another
// deployment's. That it cannot be written does no harm to the install, and is only logged.
// In a dry run nothing is written.
func (c *Client) WriteProgress(ctx context.Context, log *slog.Logger, deployment, run string, s contract.Progress, message string) {
	if dryrun.On(ctx) {
		return
	}
	system, err := Retry(ctx, c, "see whose "+SystemNamespace+" is", func(ctx context.Context) (*corev1.Namespace, error) {
		return c.Kubernetes.CoreV1().Namespaces().Get(ctx, SystemNamespace, metav1.GetOptions{})
	})
	if err == nil && !Ours(system, deployment) {
		log.Warn("the cluster does not show how far the install is: it has another deployment", "state", s)
		return
	}
	err = c.KeepNotes(ctx, deployment, StatusConfigMap, map[string]string{
		"state": string(s), "message": message, "run": run, "since": time.Now().UTC().Format(time.RFC3339),
	})
	if err != nil {
		log.Warn("the cluster does not show how far the install is", "state", s, "error", err)
	}
}
