package gitserver_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
)

func TestAnAccountThatIsNotInTheCluster(t *testing.T) {
	srv := httptest.NewTLSServer(nil)
	defer srv.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	half := &corev1.Secret{ObjectMeta: meta("git", "half"), Data: map[string][]byte{"username": []byte("root")}}
	c := &kube.Client{Kubernetes: fake.NewClientset(half,
		&corev1.ConfigMap{ObjectMeta: meta(kube.SystemNamespace, kube.CA), Data: map[string]string{kube.CAKey: string(ca)}},
	)}
	for _, name := range []string{"git/none", "git/half"} {
		_, err := gitserver.Account(t.Context(), c, contract.GitServer{}, name, func(string) {})
		require.ErrorIs(t, err, &fault.Fault{Code: gitserver.CodeServer})
		require.Equal(t, fault.Step, fault.ClassOf(err))
		require.EqualError(t, err, "read the account "+name+": secret "+name+" is missing or has no username and password")
	}
}

func TestAServerThatDoesNotAnswerIsNamed(t *testing.T) {
	end := make(chan struct{})
	s := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	t.Cleanup(func() { close(end) }) // before the server's own, which waits for its requests
	for what, ask := range map[string]func(context.Context) error{
		"api":     func(ctx context.Context) error { _, err := s.User(ctx); return err },
		"head":    func(ctx context.Context) error { _, _, err := s.Head(ctx, "slipway/platform", "main"); return err },
		"sign up": s.CheckSignUpRefused,
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			err := ask(ctx)
			require.Error(t, err)
			require.ErrorContains(t, err, "https://example.com/")
			require.ErrorContains(t, err, context.DeadlineExceeded.Error())
			require.ErrorIs(t, err, context.DeadlineExceeded)
		})
	}
}
