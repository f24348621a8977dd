package preorchestrator

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
)

// gitServer answers for /team/platform.git to who has the token, and is trusted by ca.
func gitServer(t *testing.T) (url, ca string) {
	t.Helper()
	pkt := func(line string) string { return fmt.Sprintf("%04x%s", len(line)+4, line) }
	answer := pkt("# service=git-upload-pack\n") + "0000" + pkt(strings.Repeat("1", 40)+" HEAD\x00agent=git/2\n") + pkt(strings.Repeat("1", 40)+" refs/heads/main\n") + "0000"
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case user != "argocd" || password != "the token":
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you?", http.StatusUnauthorized)
		case r.URL.Path != "/team/platform.git/info/refs" || r.URL.Query().Get("service") != "git-upload-pack":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			_, _ = w.Write([]byte(answer))
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func TestARepositoryIsAskedBeforeAnythingWaitsForIt(t *testing.T) {
	server, ca := gitServer(t)
	for what, c := range map[string]struct {
		in       contract.RepositoryInput
		password string
		want     string
	}{
		"may be read":      {contract.RepositoryInput{URL: server + "/team/platform.git", Username: "argocd", CA: ca}, "the token", ""},
		"wrong token":      {contract.RepositoryInput{URL: server + "/team/platform.git", Username: "argocd", CA: ca}, "another", "authentication required"},
		"no token":         {contract.RepositoryInput{URL: server + "/team/platform.git", CA: ca}, "", "authentication required"},
		"another name":     {contract.RepositoryInput{URL: server + "/team/platfrom.git", Username: "argocd", CA: ca}, "the token", "repository not found"},
		"CA not given":     {contract.RepositoryInput{URL: server + "/team/platform.git", Username: "argocd"}, "the token", "certificate signed by unknown authority"},
		"not from here":    {contract.RepositoryInput{URL: "https://127.0.0.1:1/team/platform.git", Username: "argocd", CA: ca}, "the token", ""},
		"another's server": {contract.RepositoryInput{URL: strings.Replace(server, "127.0.0.1", "localhost", 1) + "/team/platform.git", Username: "argocd", CA: ca}, "the token", "certificate is valid for example.com, *.example.com, not localhost"},
	} {
		t.Run(what, func(t *testing.T) {
			_, env := preparing(t, "")
			err := probeRepository(t.Context(), env, c.in, []byte(c.password))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, &fault.Fault{Code: gitserver.CodeRepository})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "the token")
		})
	}
}
