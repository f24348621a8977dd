package e2e

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// junitFile is what of junit.xml the tests look at.
type junitFile struct {
	Suites []struct {
		Name  string `xml:"name,attr"`
		Cases []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"failure"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// ofSuites lists what tests and workloads have in the cluster.
const ofSuites = `kubectl get jobs,pods,configmaps,services,deployments,persistentvolumeclaims -A -l 'slipway.sh/deployment' --no-headers -o 'custom-columns=K:.kind,N:.metadata.namespace,M:.metadata.name,L:.metadata.labels' | grep -E 'slipway.sh/(test|check|workload)' || true
kubectl get namespaces -l slipway.sh/workload -o name
kubectl get secrets -n slipway-system -o name | grep -E -- '-(test|check|workload)$' || true
`

// tries runs tests of the reference platform: they pass, and one that fails is named and
// stops no other. It leaves the workloads deployed.
func (k *kept) tries(t *testing.T) {
	t.Helper()
	passed := k.must(t, "test", "smoke")
	for _, name := range []string{"gitea-answers", "guestbook-answers"} {
		require.Regexp(t, `(?m)^\s*test/`+name+`\s+succeeded`, passed.out)
	}
	require.Empty(t, strings.TrimSpace(k.shell(t, ofSuites)), "nothing of it stays")

	wrong := filepath.Join(t.TempDir(), "platform")
	require.NoError(t, os.CopyFS(wrong, os.DirFS(filepath.Join(root(t), "examples/platform/1.0.0"))))
	file := filepath.Join(wrong, "tests/guestbook.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, []byte(strings.ReplaceAll(string(text), `"message":`, `"massage":`)), 0o600))
	failed := k.cli(t, "test", "--platform", wrong)
	require.Equal(t, 4, failed.code, slipway.Tail(failed.err))
	require.Contains(t, failed.err, "error TST-001: run the tests: 1 of the tests failed: guestbook-answers\n")
	dir := k.report(t)
	var found junitFile
	require.NoError(t, xml.Unmarshal([]byte(read(t, dir, "junit.xml")), &found))
	var cases []string
	for _, s := range found.Suites {
		for _, c := range s.Cases {
			if s.Name == "test" {
				cases = append(cases, c.Name)
			}
			if c.Name != "guestbook-answers" {
				require.Nil(t, c.Failure, c.Name)
				continue
			}
			require.NotNil(t, c.Failure)
			require.Contains(t, c.Failure.Message, `it wrote "error: no row is shown"`)
			require.Contains(t, c.Failure.Text, "TST-002")
		}
	}
	require.Equal(t, []string{"gitea-answers", "guestbook-answers", "database-keeps", "argocd-synced"}, cases)
	log := read(t, dir, "steps/test.guestbook-answers/log.txt")
	require.Contains(t, log, "The slipway is greased.", "what the Job printed")
	require.Contains(t, read(t, dir, "steps/test.database-keeps/log.txt"), "read: launched")
	require.Equal(t, "succeeded", k.outcome(t), "the status is that of the install")

	absent := k.cli(t, "test", "apps-check")
	require.Equal(t, 4, absent.code, slipway.Tail(absent.err))
	require.Contains(t, absent.out, "it is not deployed")
	require.Regexp(t, `(?m)^\s*apps-deploy/visitors\s+succeeded`, k.must(t, "test", "apps-deploy").out)
}

// keepsWorkloads: what users have deployed before an upgrade is there after it, and goes
// when they want that.
func (k *kept) keepsWorkloads(t *testing.T) {
	t.Helper()
	require.Regexp(t, `(?m)^\s*apps-check/visitors\s+succeeded`, k.must(t, "test", "apps-check").out)
	require.Contains(t, read(t, k.report(t), "steps/apps-check.visitors/log.txt"), "the first visitor said: ahoy")
	k.must(t, "test", "apps-destroy")
	require.Empty(t, strings.TrimSpace(k.shell(t, ofSuites)))
}
