package preorchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/step"
)

func runTLS(ctx context.Context, env *step.Env, in contract.TLSInput) (contract.TLS, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.TLS{}, err
	}
	t := &tlsStep{client: c, release: r, off: in.Disabled, deployment: env.Deployment, domain: in.Domain, redact: env.Redact, now: time.Now()}
	out, err := t.ensure(ctx, in, env.TLSKeyFile)
	if err == nil {
		env.Progress("%s, until %s", counted(len(r.Certificates), "certificate"), out.NotAfter)
	}
	return out, err
}

// ensure makes sure of the release's certificates, and of what clients need to trust them.
func (t *tlsStep) ensure(ctx context.Context, in contract.TLSInput, keyFile string) (contract.TLS, error) {
	var pairs []certificate.Pair
	var roots []byte
	var err error
	switch in.Mode {
	case config.UserCertificate:
		var given certificate.Pair
		if given, roots, err = t.given(keyFile, in, t.release.Hosts(in.Domain, t.deployment, in.Disabled)); err != nil {
			return contract.TLS{}, err
		}
		for range t.release.Certificates {
			pairs = append(pairs, given)
		}
	case config.SelfSigned:
		if pairs, roots, err = t.selfSigned(ctx); err != nil {
			return contract.TLS{}, err
		}
	default:
		return contract.TLS{}, certificate.Invalid(fmt.Errorf("there is no mode %q", in.Mode))
	}
	trusted := roots
	if in.Mode == config.SelfSigned {
		trusted = append(slices.Clone(roots), in.CA...)
	}
	return t.publish(ctx, in.Mode, pairs, roots, trusted)
}

type tlsStep struct {
	client     *kube.Client
	release    *platform.Release
	off        []string // components that are switched off
	deployment string
	domain     string
	redact     func(string)
	now        time.Time
}

// given reads and judges the user's certificate.
func (t *tlsStep) given(keyFile string, in contract.TLSInput, hosts []string) (pair certificate.Pair, roots []byte, err error) {
	key, err := bounded.File(keyFile, bounded.Written)
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

// selfSigned returns the certificates of the release, signed by the deployment's own CA,
// and makes each, and the CA, when it is not there or cannot stay.
func (t *tlsStep) selfSigned(ctx context.Context) (leaves []certificate.Pair, roots []byte, err error) {
	ca, err := t.read(ctx, kube.SystemNamespace, kube.CA)
	if err != nil {
		return nil, nil, err
	}
	if why := certificate.CAProblem(ca, t.now); why != "" {
		if ca, err = certificate.NewCA(t.deployment, t.now); err != nil {
			return nil, nil, err
		}
		t.redact(string(ca.Key))
		t.label(ca)
		if err := t.write(ctx, kube.SystemNamespace, kube.CA, ca, nil); err != nil {
			return nil, nil, err
		}
	}
	for _, c := range t.release.Certificates {
		namespace, name, _ := strings.Cut(c.Secret, "/")
		leaf, err := t.read(ctx, namespace, name)
		if err != nil {
			return nil, nil, err
		}
		names := t.hosts(c.Hosts)
		if why := certificate.LeafProblem(leaf, ca, names, t.now); why != "" {
			if leaf, err = certificate.NewLeaf(ca, names, t.now); err != nil {
				return nil, nil, err
			}
			t.redact(string(leaf.Key))
			t.label(leaf)
		}
		leaves = append(leaves, leaf)
	}
	return leaves, ca.Certificate, nil
}

// label makes a plan show a pair that is made anew in each as what it is.
func (t *tlsStep) label(pair certificate.Pair) {
	t.client.Plan.Label(string(pair.Certificate), generated)
	t.client.Plan.Label(string(pair.Key), generated)
}

func (t *tlsStep) hosts(hosts []string) []string {
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = platform.Fill(h, map[string]string{platform.FillDomain: t.domain})
	}
	return out
}

// publish writes the certificates with their roots, and what clients are to trust.
func (t *tlsStep) publish(ctx context.Context, mode string, pairs []certificate.Pair, roots, trusted []byte) (contract.TLS, error) {
	out := contract.TLS{Issuer: mode}
	var first time.Time
	for i, c := range t.release.Certificates {
		leaf, err := certificate.Leaf(pairs[i].Certificate)
		if err != nil {
			return contract.TLS{}, certificate.Invalid(err)
		}
		if first.IsZero() || leaf.NotAfter.Before(first) {
			first = leaf.NotAfter
		}
		namespace, name, _ := strings.Cut(c.Secret, "/")
		if err := t.write(ctx, namespace, name, pairs[i], roots); err != nil {
			return contract.TLS{}, err
		}
		if server := t.release.GitServer(); server != nil && out.GitHost == "" && !slices.Contains(t.off, server.Component) {
			hosts := t.hosts(server.Hosts)
			if at := slices.IndexFunc(hosts, func(h string) bool { return leaf.VerifyHostname(h) == nil }); at >= 0 {
				out.GitHost = hosts[at]
			}
		}
	}
	out.NotAfter = first.UTC().Format(time.RFC3339)
	namespaces := []string{kube.SystemNamespace}
	for _, n := range t.release.Namespaces {
		namespaces = append(namespaces, n.Name)
	}
	for _, n := range namespaces {
		if err := t.configMap(ctx, n, kube.CA, nil, map[string]string{kube.CAKey: string(trusted)}); err != nil {
			return contract.TLS{}, err
		}
	}
	engine := t.release.Engine()
	if engine == nil || out.GitHost == "" {
		return out, nil
	}
	partOf := map[string]string{"app.kubernetes.io/part-of": "argocd"}
	return out, t.configMap(ctx, engine.Namespace, argoTLSCerts, partOf, map[string]string{out.GitHost: string(trusted)})
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

// write makes a TLS Secret hold exactly pair and, as ca.crt, roots if there are any.
func (t *tlsStep) write(ctx context.Context, namespace, name string, pair certificate.Pair, roots []byte) error {
	data := map[string][]byte{corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key}
	if roots != nil {
		data["ca.crt"] = roots
	}
	return writeSecret(ctx, t.client, namespace, name, corev1.SecretTypeTLS, kube.Labels(t.deployment), data)
}

func (t *tlsStep) configMap(ctx context.Context, namespace, name string, extra, data map[string]string) error {
	_, err := writeConfigMap(ctx, t.client, namespace, name, labels.Merge(kube.Labels(t.deployment), extra), data)
	return err
}
