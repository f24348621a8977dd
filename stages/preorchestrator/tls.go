package preorchestrator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/trust"
	"github.com/slipway-sh/slipway/stages/step"
)

// The names of the git server in the cluster.
const (
	giteaHost     = gitserver.Service + "." + gitserver.Namespace + ".svc"
	giteaFullHost = giteaHost + ".cluster.local"
)

// PublicHost is the git server's host as users see it.
func PublicHost(domain string) string { return "gitea." + domain }

func runTLS(ctx context.Context, env *step.Env, in contract.TLSInput) (contract.TLS, error) {
	r, c, err := open(env)
	if err != nil {
		return contract.TLS{}, err
	}
	t := &tlsStep{client: c, deployment: env.Deployment, domain: in.Domain, redact: env.Redact, now: time.Now()}
	var serving certificate.Pair
	var roots []byte
	switch in.Mode {
	case config.UserCertificate:
		serving, roots, err = t.given(env.TLSKeyFile, in, r.Hosts(in.Domain, env.Deployment, in.Disabled))
	case "self-signed":
		serving, roots, err = t.selfSigned(ctx)
	default:
		err = certificate.Invalid(fmt.Errorf("there is no mode %q", in.Mode))
	}
	if err != nil {
		return contract.TLS{}, err
	}
	out, err := t.publish(ctx, in.Mode, serving, roots)
	if err == nil {
		env.Progress("certificate %.12s… until %s", out.SHA256, out.NotAfter)
	}
	return out, err
}

type tlsStep struct {
	client     *kube.Client
	deployment string
	domain     string
	redact     func(string)
	now        time.Time
}

// given reads and judges the user's certificate.
func (t *tlsStep) given(keyFile string, in contract.TLSInput, hosts []string) (pair certificate.Pair, roots []byte, err error) {
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return pair, nil, certificate.Invalid(fmt.Errorf("read its private key: %w", err))
	}
	t.redact(string(key))
	pair = certificate.Pair{Certificate: []byte(in.Certificate), Key: key}
	if errs := certificate.Given(pair.Certificate, key, []byte(in.CA), hosts, t.now); len(errs) > 0 {
		return pair, nil, certificate.Invalid(errors.Join(errs...))
	}
	if in.CA != "" {
		return pair, []byte(in.CA), nil
	}
	roots, err = certificate.Issuers(pair.Certificate)
	return pair, roots, err
}

// selfSigned returns a serving certificate of the deployment's own CA, making
// either when it is not there or cannot stay.
func (t *tlsStep) selfSigned(ctx context.Context) (leaf certificate.Pair, roots []byte, err error) {
	ca, err := t.read(ctx, kube.SystemNamespace, trust.CA)
	if err != nil {
		return leaf, nil, err
	}
	if why := certificate.CAProblem(ca, t.now); why != "" {
		if ca, err = certificate.NewCA(t.deployment, t.now); err != nil {
			return leaf, nil, err
		}
		t.redact(string(ca.Key))
		if err := t.write(ctx, kube.SystemNamespace, trust.CA, ca, nil); err != nil {
			return leaf, nil, err
		}
	}
	names := certificate.Names(t.domain, giteaHost, giteaFullHost)
	if leaf, err = t.read(ctx, gitserver.Namespace, giteaTLS); err != nil {
		return leaf, nil, err
	}
	if why := certificate.LeafProblem(leaf, ca, names, t.now); why != "" {
		if leaf, err = certificate.NewLeaf(ca, names, t.now); err != nil {
			return leaf, nil, err
		}
		t.redact(string(leaf.Key))
	}
	return leaf, ca.Certificate, nil
}

// publish writes the serving certificate and what clients need to trust it.
func (t *tlsStep) publish(ctx context.Context, mode string, serving certificate.Pair, roots []byte) (contract.TLS, error) {
	leaf, err := certificate.Leaf(serving.Certificate)
	if err != nil {
		return contract.TLS{}, certificate.Invalid(err)
	}
	out := contract.TLS{
		Issuer: mode, NotAfter: leaf.NotAfter.UTC().Format(time.RFC3339),
		SHA256: certificate.Fingerprint(leaf), GitHost: giteaHost,
	}
	if leaf.VerifyHostname(giteaHost) != nil {
		out.GitHost = PublicHost(t.domain)
	}
	if err := t.write(ctx, gitserver.Namespace, giteaTLS, serving, roots); err != nil {
		return contract.TLS{}, err
	}
	if err := t.configMap(ctx, kube.SystemNamespace, trust.CA, nil, map[string]string{trust.CAKey: string(roots)}); err != nil {
		return contract.TLS{}, err
	}
	certs := map[string]string{out.GitHost: string(roots)}
	partOf := map[string]string{"app.kubernetes.io/part-of": "argocd"}
	if err := t.configMap(ctx, argo.Namespace, argoTLSCerts, partOf, certs); err != nil {
		return contract.TLS{}, err
	}
	return out, nil
}

// read takes a pair out of a TLS Secret; it is empty when there is none.
func (t *tlsStep) read(ctx context.Context, namespace, name string) (certificate.Pair, error) {
	o, err := t.client.Secret(ctx, namespace, name)
	if err != nil || o == nil {
		return certificate.Pair{}, err
	}
	key := o.Data[corev1.TLSPrivateKeyKey]
	t.redact(string(key))
	return certificate.Pair{Certificate: o.Data[corev1.TLSCertKey], Key: key}, nil
}

// write makes a TLS Secret hold pair, and roots as ca.crt unless there are none.
// It writes only what differs.
func (t *tlsStep) write(ctx context.Context, namespace, name string, pair certificate.Pair, roots []byte) error {
	data := map[string][]byte{corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key}
	if roots != nil {
		data["ca.crt"] = roots
	}
	return writeSecret(ctx, t.client, namespace, name, corev1.SecretTypeTLS, kube.Labels(t.deployment), data)
}

// writeSecret makes a Secret hold exactly data; it writes only what differs. It
// is for copies and certificates, not for what is generated once.
func writeSecret(ctx context.Context, c *kube.Client, namespace, name string, kind corev1.SecretType, all map[string]string, data map[string][]byte) error {
	api := c.Kubernetes.CoreV1().Secrets(namespace)
	return c.Retry(ctx, "write secret "+namespace+"/"+name, func(ctx context.Context) error {
		o, err := api.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = api.Create(ctx, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: all}, Type: kind, Data: data,
			}, metav1.CreateOptions{FieldManager: kube.FieldManager})
			return err
		}
		if err != nil || maps.EqualFunc(o.Data, data, bytes.Equal) {
			return err
		}
		o.Data = data
		_, err = api.Update(ctx, o, metav1.UpdateOptions{FieldManager: kube.FieldManager})
		return err
	})
}

// configMap makes a ConfigMap hold exactly data; it writes only what differs.
func (t *tlsStep) configMap(ctx context.Context, namespace, name string, extra, data map[string]string) error {
	api := t.client.Kubernetes.CoreV1().ConfigMaps(namespace)
	return t.client.Retry(ctx, "write configmap "+namespace+"/"+name, func(ctx context.Context) error {
		o, err := api.Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			_, err = api.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels.Merge(kube.Labels(t.deployment), extra)}, Data: data,
			}, metav1.CreateOptions{FieldManager: kube.FieldManager})
			return err
		}
		if err != nil || maps.Equal(o.Data, data) {
			return err
		}
		o.Data = data
		_, err = api.Update(ctx, o, metav1.UpdateOptions{FieldManager: kube.FieldManager})
		return err
	})
}
