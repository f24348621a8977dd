package component

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// noting is an installer of a component in the namespace shop, of a release that generates
// shop/generated, shop/settings and shop/cert, on a cluster with these objects.
func noting(t *testing.T, objs ...metav1.Object) *installer {
	t.Helper()
	api := kubetest.Serve(t)
	for _, o := range objs {
		text, err := json.Marshal(o)
		require.NoError(t, err)
		resource := "secrets"
		if _, is := o.(*corev1.ConfigMap); is {
			resource = "configmaps"
		}
		api.Set(t, "/api/v1/namespaces/"+o.GetNamespace()+"/"+resource+"/"+o.GetName(), string(text))
	}
	client, err := kube.New(&rest.Config{Host: api.URL})
	require.NoError(t, err)
	return &installer{
		client:    client,
		component: platform.Component{Name: "web", Namespace: "shop"},
		release: &platform.Release{
			Namespaces:   []platform.Namespace{{Name: "shop"}},
			Secrets:      []platform.Secret{{Name: "generated", Namespace: "shop"}},
			ConfigMaps:   []platform.ConfigMap{{Name: "settings", Namespace: "shop"}},
			Certificates: []platform.Certificate{{Secret: "shop/cert"}},
		},
	}
}

func secret(namespace, name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{key: []byte(value)}}
}

func configMap(name, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: map[string]string{"k": value}}
}

func salt(value string) *corev1.Secret {
	return secret(kube.SystemNamespace, kube.SaltSecret, kube.SaltKey, value)
}

// noted is the note of the Deployment among objects; empty if it has none.
func noted(t *testing.T, i *installer, manifest string) string {
	t.Helper()
	objs, err := kube.Decode([]byte(manifest))
	require.NoError(t, err)
	require.NoError(t, i.annotate(t.Context(), objs))
	for _, o := range objs {
		require.Empty(t, o.GetAnnotations())
		if o.GetKind() == "Deployment" {
			note, _, err := unstructured.NestedString(o.Object, "spec", "template", "metadata", "annotations", render.ConfigAnnotation)
			require.NoError(t, err)
			return note
		}
	}
	t.Fatal("there is no Deployment")
	return ""
}

// reading is a Deployment whose pod reads what a volume names.
func reading(volume string) string {
	return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop}, spec: {template: {spec: {containers: [{name: web}], volumes: [{name: v, " + volume + "}]}}}}\n"
}

func TestPodsStartAgainWhenWhatTheyReadChanges(t *testing.T) {
	const own = "---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: page, namespace: shop}, data: {k: VALUE}}\n"
	const ownSecret = "---\n{apiVersion: v1, kind: Secret, metadata: {name: login, namespace: shop}, stringData: {k: VALUE}}\n"
	ownPage := func(value string) (*installer, string) {
		return noting(t, salt("s")), reading("configMap: {name: page}") + strings.ReplaceAll(own, "VALUE", value)
	}
	ownLogin := func(value string) (*installer, string) {
		return noting(t, salt("s")), reading("secret: {secretName: login}") + strings.ReplaceAll(ownSecret, "VALUE", value)
	}
	generated := func(value string) (*installer, string) {
		return noting(t, salt("s"), secret("shop", "generated", "password", value)), reading("secret: {secretName: generated}")
	}
	made := func(value string) (*installer, string) {
		return noting(t, salt("s"), configMap("settings", value)), reading("configMap: {name: settings}")
	}
	certificate := func(value string) (*installer, string) {
		return noting(t, salt("s"), secret("shop", "cert", "tls.crt", value)), reading("secret: {secretName: cert}")
	}
	authority := func(value string) (*installer, string) {
		return noting(t, salt("s"), configMap(platform.AuthorityConfigMap, value)), reading("configMap: {name: " + platform.AuthorityConfigMap + "}")
	}
	salted := func(value string) (*installer, string) {
		return noting(t, salt(value), secret("shop", "generated", "password", "p")), reading("secret: {secretName: generated}")
	}
	for what, of := range map[string]func(string) (*installer, string){
		"a ConfigMap of its own": ownPage, "a Secret of its own": ownLogin, "a generated Secret": generated, "a ConfigMap of the release": made,
		"a certificate": certificate, "what clients trust": authority, "the salt, without which a password could be guessed": salted,
	} {
		note := func(value string) string {
			i, manifest := of(value)
			return noted(t, i, manifest)
		}
		require.Regexp(t, `^[0-9a-f]{64}$`, note("a"), what)
		require.Equal(t, note("a"), note("a"), what)
		require.NotEqual(t, note("a"), note("b"), what)
	}
}

func TestWhatOthersMakeStartsNoPodAgain(t *testing.T) {
	theirs := noting(t, salt("s"), secret("shop", "theirs", "k", "a"), configMap("kube-root-ca.crt", "a"))
	require.Empty(t, noted(t, theirs, reading("secret: {secretName: theirs}")))
	require.Empty(t, noted(t, theirs, reading("configMap: {name: kube-root-ca.crt}")))
	require.Empty(t, noted(t, theirs, reading("emptyDir: {}")))
	elsewhere := "---\n{apiVersion: v1, kind: Secret, metadata: {name: generated, namespace: other}, data: {}}\n"
	require.Empty(t, noted(t, theirs, reading("secret: {secretName: elsewhere}")+strings.ReplaceAll(elsewhere, "generated", "elsewhere")), "one in another namespace is another one")

	both := reading("projected: {sources: [{secret: {name: generated}}, {secret: {name: theirs}}]}")
	with := noted(t, noting(t, salt("s"), secret("shop", "generated", "k", "a"), secret("shop", "theirs", "k", "b")), both)
	require.NotEmpty(t, with)
	require.Equal(t, with, noted(t, noting(t, salt("s"), secret("shop", "generated", "k", "a"), secret("shop", "theirs", "k", "c")), both), "only theirs has changed")
}

// TestASecretThatComesLater: what the configuration gives may not be there yet.
func TestASecretThatComesLater(t *testing.T) {
	manifest := reading("secret: {secretName: generated}")
	without := noted(t, noting(t, salt("s")), manifest)
	require.NotEmpty(t, without)
	require.NotEqual(t, without, noted(t, noting(t, salt("s"), secret("shop", "generated", "k", "a")), manifest))
}

// refusing answers that nobody may read the Secret generated.
type refusing struct{ next http.RoundTripper }

func (r refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(req.URL.Path, "/secrets/generated") {
		return r.next.RoundTrip(req)
	}
	const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"you may not"}`
	return &http.Response{StatusCode: http.StatusForbidden, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}

func TestANoteThatCannotBeMade(t *testing.T) {
	objs, err := kube.Decode([]byte(reading("secret: {secretName: generated}")))
	require.NoError(t, err)
	require.ErrorContains(t, noting(t, secret("shop", "generated", "k", "a")).annotate(t.Context(), objs), "secret slipway-system/slipway-salt is not there")

	i := noting(t, salt("s"))
	i.client, err = kube.New(&rest.Config{Host: i.client.Config.Host, WrapTransport: func(next http.RoundTripper) http.RoundTripper { return refusing{next} }})
	require.NoError(t, err)
	err = i.annotate(t.Context(), objs)
	require.True(t, apierrors.IsForbidden(err), err)
	require.ErrorContains(t, err, "get Secret shop/generated: ")
}

// TestANewPasswordStartsThePodsOfAComponent: the whole step.
func TestANewPasswordStartsThePodsOfAComponent(t *testing.T) {
	const atGenerated = "/api/v1/namespaces/shop/secrets/generated"
	s := newFixture(t, "  - {name: web, kind: manifests, path: web.yaml, namespace: shop}\n", map[string]string{"web.yaml": reading("secret: {secretName: generated}")})
	s.api.Set(t, atGenerated, "data: {password: YQ==}")
	in := contract.ComponentInput{Component: "web"}
	note := func() any {
		return s.at(atWeb, "spec", "template", "metadata", "annotations", render.ConfigAnnotation)
	}
	_, err := s.install(t.Context(), in)
	require.NoError(t, err)
	first := note()
	require.NotNil(t, first)
	s.held(t, in)
	s.api.Set(t, atGenerated, "data: {password: Yg==}")
	out, err := s.install(t.Context(), in)
	require.NoError(t, err)
	require.Equal(t, 1, out.Changed)
	require.NotEqual(t, first, note())
	require.NotContains(t, s.shown.String(), "Yg==")
}

func TestPodsResolveHostsToServices(t *testing.T) {
	s := newFixture(t, "  - {name: web, kind: manifests, path: web.yaml, namespace: shop, hosts: {\"git.{domain}\": shop/git}}\n", map[string]string{"web.yaml": webYAML})
	in := contract.ComponentInput{Component: "web", Hosts: map[string]string{"git.example.org": "shop/git"}}
	const atGit = "/api/v1/namespaces/shop/services/git"
	s.api.Set(t, atGit, "spec: {clusterIP: None}")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := s.install(ctx, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeWait})
	require.ErrorContains(t, err, "the Service shop/git; last seen: it has no address in the cluster")
	require.Nil(t, s.api.Get(atWeb))

	time.AfterFunc(300*time.Millisecond, func() { s.api.Set(t, atGit, "spec: {clusterIP: 10.96.0.7}") })
	_, err = s.install(t.Context(), in)
	require.NoError(t, err, "components may be installed at the same time")
	require.Equal(t, []any{map[string]any{"ip": "10.96.0.7", "hostnames": []any{"git.example.org"}}}, s.at(atWeb, "spec", "template", "spec", "hostAliases"))
	s.held(t, in)
}
