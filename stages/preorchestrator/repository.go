package preorchestrator

import (
	"context"
	"net/url"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

// runRepository tells Argo CD how it reads a repository of the user's, which is asked first if it is read by HTTPS.
func runRepository(ctx context.Context, env *step.Env, in contract.RepositoryInput) (contract.Repository, error) {
	c, err := env.Connect()
	if err != nil {
		return contract.Repository{}, err
	}
	data := map[string][]byte{"type": []byte("git"), "url": []byte(in.URL)}
	if in.Username != "" {
		data["username"] = []byte(in.Username)
	}
	for name, key := range map[string]struct {
		given bool
		in    string
	}{contract.GitPassword: {in.Password, "password"}, contract.GitKey: {in.Key, "sshPrivateKey"}} {
		if !key.given {
			continue
		}
		value, err := userSecret(env, name)
		if err != nil {
			return contract.Repository{}, err
		}
		env.Redact(string(value))
		data[key.in] = value
	}
	if !in.Key { // a wrong key is for Argo CD to report
		if err := askRepository(ctx, env, in, data["password"]); err != nil {
			return contract.Repository{}, err
		}
	}
	all := kube.Labels(env.Deployment)
	all["argocd.argoproj.io/secret-type"] = "repository"
	if err := writeSecret(ctx, c, in.Namespace, argoRepository, corev1.SecretTypeOpaque, all, data); err != nil {
		return contract.Repository{}, err
	}
	// Argo CD's pods do not start without it.
	trusted := map[string]string{}
	if in.CA != "" {
		server := url.URL{Host: in.Host}
		trusted[server.Hostname()] = in.CA // Argo CD looks for it without the port
	}
	labels := kube.Labels(env.Deployment)
	labels["app.kubernetes.io/part-of"] = "argocd"
	if _, err := writeConfigMap(ctx, c, in.Namespace, argoTLSCerts, labels, trusted); err != nil {
		return contract.Repository{}, err
	}
	return contract.Repository{URL: in.URL}, nil
}
