package preorchestrator

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

func fakeKube(objs ...runtime.Object) *kube.Client {
	return &kube.Client{Kubernetes: fake.NewClientset(objs...)}
}

func secretsInput() contract.SecretsInput {
	return contract.SecretsInput{Domain: "example.org", AdminEmail: "ada@example.org"}
}

func ensureSecrets(t *testing.T, c *kube.Client, want []platform.Secret) (contract.Secrets, []string, error) {
	t.Helper()
	var hidden []string
	s := &secrets{client: c, deployment: "demo", in: secretsInput(), redact: func(v string) { hidden = append(hidden, v) }, have: map[string]*corev1.Secret{}, declared: want}
	out, err := s.ensure(t.Context(), want)
	return out, hidden, err
}

func data(t *testing.T, c *kube.Client, namespace, name string) map[string][]byte {
	t.Helper()
	o, err := c.Kubernetes.CoreV1().Secrets(namespace).Get(context.Background(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return o.Data
}

func wanted() []platform.Secret {
	return []platform.Secret{
		// The copy comes first: order does not matter.
		{Name: "reader", Namespace: "web", Keys: []platform.SecretKey{
			{Key: "username", Generate: platform.CopyOf, From: "db/reader/username"},
			{Key: "password", Generate: platform.CopyOf, From: "db/reader/password"},
		}},
		{Name: "reader", Namespace: "db", Labels: map[string]string{"a": "b"}, Keys: []platform.SecretKey{
			{Key: "username", Generate: platform.Literal, Value: "reader of {deployment}"},
			{Key: "password", Generate: platform.Password, Length: 32},
			{Key: "token", Generate: platform.Token, Length: 41},
		}},
	}
}

func TestSecretsAreMadeOnceAndNeverChange(t *testing.T) {
	c := fakeKube()
	out, hidden, err := ensureSecrets(t, c, wanted())
	require.NoError(t, err)
	require.Equal(t, []string{"db/reader", "web/reader"}, out.Created)
	db := data(t, c, "db", "reader")
	require.Equal(t, "reader of demo", string(db["username"]))
	require.Regexp(t, regexp.MustCompile(`^[a-zA-Z0-9]{32}$`), string(db["password"]))
	require.Regexp(t, regexp.MustCompile(`^[0-9a-f]{41}$`), string(db["token"]))
	require.Equal(t, map[string][]byte{"username": db["username"], "password": db["password"]}, data(t, c, "web", "reader"))
	require.ElementsMatch(t, []string{string(db["password"]), string(db["token"])}, hidden, "what is generated is kept out of logs, names are not")

	o, err := c.Kubernetes.CoreV1().Secrets("db").Get(t.Context(), "reader", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "b", kube.ManagedBy: "slipway", kube.DeploymentLabel: "demo"}, o.Labels)

	out, hidden, err = ensureSecrets(t, c, wanted())
	require.NoError(t, err)
	require.Empty(t, out.Created)
	require.Empty(t, out.Added)
	require.Equal(t, db, data(t, c, "db", "reader"))
	require.Len(t, hidden, 2, "also what was read is kept out of logs")
}

func TestAMissingKeyIsAddedAndTheOthersStay(t *testing.T) {
	c := fakeKube(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: "db"},
		Data:       map[string][]byte{"password": []byte("chosen-by-hand"), "extra": []byte("kept")},
	})
	out, _, err := ensureSecrets(t, c, wanted())
	require.NoError(t, err)
	require.Equal(t, []string{"web/reader"}, out.Created)
	require.Equal(t, []string{"db/reader/token", "db/reader/username"}, out.Added)
	db := data(t, c, "db", "reader")
	require.Equal(t, "chosen-by-hand", string(db["password"]))
	require.Equal(t, "kept", string(db["extra"]))
	require.Equal(t, "chosen-by-hand", string(data(t, c, "web", "reader")["password"]))
}

// What the configuration gives is the user's: it is there when it is given, changes
// when that changes, and what is generated beside it stays.
func TestGivenSecretsFollowTheConfiguration(t *testing.T) {
	all := []platform.Secret{
		{Name: "mail", Namespace: "web", Keys: []platform.SecretKey{{Key: "password", Generate: platform.Given, From: "smtp.password"}}},
		{Name: "both", Namespace: "web", Keys: []platform.SecretKey{
			{Key: "own", Generate: platform.Password, Length: 32}, {Key: "metrics", Generate: platform.Given, From: "observability.password"},
		}},
	}
	c := fakeKube()
	ensure := func(given map[string][]byte) (contract.Secrets, []string) {
		var hidden []string
		s := &secrets{client: c, deployment: "demo", in: secretsInput(), redact: func(v string) { hidden = append(hidden, v) }, have: map[string]*corev1.Secret{}, given: given}
		out, err := s.ensure(t.Context(), (&platform.Release{Secrets: all}).SecretsGiven(slices.Collect(maps.Keys(given))))
		require.NoError(t, err)
		return out, hidden
	}
	out, _ := ensure(nil)
	require.Equal(t, []string{"web/both"}, out.Created, "a secret without keys is not made")
	own := data(t, c, "web", "both")["own"]
	require.Len(t, own, 32)

	out, hidden := ensure(map[string][]byte{"smtp.password": []byte("first"), "observability.password": []byte("m")})
	require.Equal(t, []string{"web/mail"}, out.Created)
	require.Equal(t, []string{"web/both/metrics"}, out.Added)
	require.Contains(t, hidden, "first")
	require.Equal(t, map[string][]byte{"password": []byte("first")}, data(t, c, "web", "mail"))

	out, hidden = ensure(map[string][]byte{"smtp.password": []byte("second"), "observability.password": []byte("m")})
	require.Equal(t, []string{"web/mail/password"}, out.Added)
	require.Empty(t, out.Created)
	require.Contains(t, hidden, "second")
	require.Equal(t, map[string][]byte{"password": []byte("second")}, data(t, c, "web", "mail"))
	require.Equal(t, map[string][]byte{"own": own, "metrics": []byte("m")}, data(t, c, "web", "both"))
	out, _ = ensure(map[string][]byte{"smtp.password": []byte("second"), "observability.password": []byte("m")})
	require.Empty(t, out.Added)
}

func TestACopyOfNothingIsAnError(t *testing.T) {
	c := fakeKube()
	_, _, err := ensureSecrets(t, c, []platform.Secret{{Name: "a", Namespace: "n", Keys: []platform.SecretKey{
		{Key: "k", Generate: platform.CopyOf, From: "n/b/k"},
	}}})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeSecret})
	require.ErrorContains(t, err, "n/a/k: it is a copy of n/b/k, which is not there")
	require.Equal(t, fault.Step, fault.ClassOf(err))
	list, err := c.Kubernetes.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, list.Items, "nothing is written when the plan fails")
}

func TestPasswordsHaveAllClassesAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 200 {
		b, err := password(16)
		require.NoError(t, err)
		require.Regexp(t, `[a-z]`, string(b))
		require.Regexp(t, `[A-Z]`, string(b))
		require.Regexp(t, `[0-9]`, string(b))
		require.False(t, seen[string(b)])
		seen[string(b)] = true
	}
	_, err := password(2)
	require.Error(t, err)
}

// TestANamespaceThatWasTakenOverIsUsedAndNotMade, so that a destroy leaves it.
func TestANamespaceThatWasTakenOverIsUsedAndNotMade(t *testing.T) {
	c := fakeKube(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{kube.DeploymentLabel: "demo"}}})
	for range 2 {
		_, err := ensureNamespaces(t.Context(), c, "demo", "", []platform.Namespace{{Name: "team"}, {Name: "shop"}})
		require.NoError(t, err)
		for name, made := range map[string]bool{"team": false, "shop": true} {
			ns, err := c.Kubernetes.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(t, err)
			require.Equal(t, "demo", kube.DeploymentOf(ns.Labels))
			require.Equal(t, made, kube.MadeNamespace(ns.Labels, "demo"), name)
		}
	}
}

func TestNamespacesOfOthersAreLeftAlone(t *testing.T) {
	theirs := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "gitea"}}
	other := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "argocd", Labels: kube.Labels("elsewhere")}}
	c := fakeKube(theirs, other)
	_, err := ensureNamespaces(t.Context(), c, "demo", "", []platform.Namespace{{Name: "apps"}, {Name: "gitea"}, {Name: "argocd"}})
	require.ErrorContains(t, err, "gitea (without an owner), argocd (of the deployment elsewhere); nothing was created")
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
	for _, c := range []*kube.Client{fakeKube(other), fakeKube(theirs)} {
		_, err := ensureNamespaces(t.Context(), c, "demo", "", []platform.Namespace{{Name: "gitea"}, {Name: "argocd"}})
		f, _ := errors.AsType[*fault.Fault](err)
		require.Equal(t, kube.CodeForeign, f.Code)
		require.NotRegexp(t, "destroy|delete", f.Fix, "followed to the letter it would remove what others have there")
	}
	list, err := c.Kubernetes.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 2, "nothing was created")
}

// TestANamespaceThatIsBeingDeletedIsMadeAgain: a look at it does not wait until it is gone, and
// take it for one that is there.
func TestANamespaceThatIsBeingDeletedIsMadeAgain(t *testing.T) {
	leaving := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "apps", UID: "former", Labels: kube.Labels("demo"), DeletionTimestamp: &metav1.Time{Time: time.Now()}, Finalizers: []string{"kubernetes"},
	}}
	c := fakeKube(leaving, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kube.SystemNamespace, Labels: kube.Labels("demo")}})
	want := []platform.Namespace{{Name: "apps"}}
	gone := make(chan error, 1)
	go func() {
		time.Sleep(300 * time.Millisecond)
		gone <- c.Kubernetes.CoreV1().Namespaces().Delete(t.Context(), "apps", metav1.DeleteOptions{})
	}()
	c.Plan = plan.Verify("namespaces")
	_, err := ensureNamespaces(t.Context(), c, "demo", "", want)
	require.ErrorIs(t, err, plan.ErrLater)
	c.Plan = nil
	out, err := ensureNamespaces(t.Context(), c, "demo", "", want)
	require.NoError(t, err)
	require.NoError(t, <-gone)
	require.Equal(t, []string{"apps"}, out.Created)
	o, err := c.Kubernetes.CoreV1().Namespaces().Get(t.Context(), "apps", metav1.GetOptions{})
	require.NoError(t, err)
	require.Nil(t, o.DeletionTimestamp)
	require.True(t, kube.MadeNamespace(o.Labels, "demo"))
}

func TestNamespacesGetTheirLabels(t *testing.T) {
	c := fakeKube()
	want := []platform.Namespace{{Name: "apps", Labels: map[string]string{"team": "a"}}}
	out, err := ensureNamespaces(t.Context(), c, "demo", "", want)
	require.NoError(t, err)
	require.Equal(t, []string{"apps", kube.SystemNamespace}, out.Created)
	o, err := c.Kubernetes.CoreV1().Namespaces().Get(t.Context(), "apps", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"team": "a", kube.ManagedBy: "slipway", kube.DeploymentLabel: "demo"}, o.Labels)
	out, err = ensureNamespaces(t.Context(), c, "demo", "", want)
	require.NoError(t, err)
	require.Empty(t, out.Created)
	require.Equal(t, []string{"apps", kube.SystemNamespace}, out.Names)
}

// TestLiteralsFollowTheRelease: whatever is in the cluster, and so do their copies.
func TestLiteralsFollowTheRelease(t *testing.T) {
	c, all := fakeKube(), wanted()
	_, _, err := ensureSecrets(t, c, all)
	require.NoError(t, err)
	password := data(t, c, "db", "reader")["password"]
	for _, value := range []string{"reader of {deployment}", "{adminEmail}"} {
		all[1].Keys[0].Value = value
		o, err := c.Kubernetes.CoreV1().Secrets("db").Get(t.Context(), "reader", metav1.GetOptions{})
		require.NoError(t, err)
		o.Data["username"] = []byte("somebody else")
		_, err = c.Kubernetes.CoreV1().Secrets("db").Update(t.Context(), o, metav1.UpdateOptions{})
		require.NoError(t, err)
		_, hidden, err := ensureSecrets(t, c, all)
		require.NoError(t, err)
		want := strings.NewReplacer("{deployment}", "demo", "{adminEmail}", "ada@example.org").Replace(value)
		require.Equal(t, want, string(data(t, c, "db", "reader")["username"]))
		require.Equal(t, want, string(data(t, c, "web", "reader")["username"]))
		require.Equal(t, password, data(t, c, "db", "reader")["password"], "it was generated, and stays")
		require.NotContains(t, hidden, want)
	}
}

// TestAPlanOfALabelThatANamespaceLoses tries it out: that the namespace has all labels of the
// release does not say that it has no more.
func TestAPlanOfALabelThatANamespaceLoses(t *testing.T) {
	c := fakeKube()
	ensure := func(labels map[string]string) {
		t.Helper()
		_, err := ensureNamespaces(t.Context(), c, "demo", "", []platform.Namespace{{Name: "apps", Labels: labels}})
		require.NoError(t, err)
	}
	ensure(map[string]string{"a": "x", "b": "x"})
	c.Plan = new(plan.Plan).Of("a/b")
	ensure(map[string]string{"a": "x"}) // which the fake carries out
	o, err := c.Kubernetes.CoreV1().Namespaces().Get(t.Context(), "apps", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, map[string]string{"a": "x", kube.ManagedBy: "slipway", kube.DeploymentLabel: "demo"}, o.Labels)
}
