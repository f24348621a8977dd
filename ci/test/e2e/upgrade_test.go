package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// released prints what an upgrade to release 1.1.0 changes, and what it must leave alone: a
// line for each.
const released = atRelease + `
kubectl get secret -n argocd argocd-redis -o 'jsonpath={.data.auth}' | sha256sum
for secret in gitea/gitea-admin gitea/gitea-keys database/database-owner database/database-reader guestbook/database-reader; do
  kubectl get secret -n "${secret%/*}" "${secret#*/}" -o 'jsonpath={.data}'
done | sha256sum
kubectl get deployment -n guestbook guestbook -o 'jsonpath={.spec.template.spec.containers[0].env[?(@.name=="TITLE")].value}{"\n"}'
kubectl get deployment -n platform welcome --ignore-not-found -o name
`

// plans is the plan of an upgrade.
func (k *kept) plans(t *testing.T, args ...string) planned {
	t.Helper()
	return k.plan(t, append([]string{"upgrade"}, args...)...)
}

func (k *kept) plan(t *testing.T, args ...string) planned {
	t.Helper()
	r := k.must(t, "plan", append([]string{"--output", "json"}, args...)...)
	var p planned
	require.NoError(t, json.Unmarshal([]byte(r.out), &p))
	return p
}

// upgrades brings the reference platform from release 1.0.0 to 1.1.0 and tries to go back.
func (k *kept) upgrades(t *testing.T) {
	t.Helper()
	refused := func(code, says string, command string, args ...string) {
		t.Helper()
		r := k.cli(t, command, args...)
		require.Equal(t, 2, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "error "+code)
		require.Contains(t, r.err, says)
	}
	facts := func() []string { return strings.Split(strings.TrimSpace(k.shell(t, released)), "\n") }
	before := facts()
	require.Len(t, before, 4)
	require.Equal(t, `{"platform":"reference","version":"1.0.0"`, before[0])
	require.Equal(t, "Slipway guestbook", before[3])
	refused("PLT-023", "upgrade to release 1.0.0: it is installed already", "upgrade", "--to", "1.0.0")
	refused("PLT-021", "there is no release 7.0.0", "upgrade", "--to", "7.0.0")

	plan := k.plans(t, "--to", "1.1.0")
	require.Equal(t, before, facts(), "a plan changes nothing")
	require.Contains(t, plan.of("applications"), "add Application argocd/welcome")
	require.Contains(t, plan.names(), "change Secret argocd/argocd-redis")
	require.Contains(t, plan.names(), "add Deployment platform/welcome")
	require.NotEmpty(t, plan.of("files"))

	const started = `kubectl get --raw /readyz --server https://cluster:6444 | grep '"started"'`
	node := k.shell(t, started)
	r := k.must(t, "upgrade", "--to", "1.1.0", "--approve", plan.Digest)
	report := k.report(t)
	page := read(t, report, "report.html")
	require.Contains(t, page, plan.Digest)
	k.printed.add(page + read(t, report, "report.json"))
	require.Equal(t, node, k.shell(t, started), "the cluster keeps running")
	require.Contains(t, r.out, "\nupgraded from 1.0.0 to 1.1.0 in ")
	require.Regexp(t, `(?m)^\s*infrastructure/terraform\s+reused`, r.out)
	require.Regexp(t, `(?m)^welcome\s+.*Synced\s+Healthy`, r.out)
	after := facts()
	require.Len(t, after, 5)
	require.Equal(t, `{"platform":"reference","version":"1.1.0"`, after[0])
	require.NotEqual(t, before[1], after[1], "the release rotates it")
	require.Equal(t, before[2], after[2], "all other passwords stay")
	require.Equal(t, "Guestbook", after[3])
	require.Equal(t, "deployment.apps/welcome", after[4])

	refused("UPG-001", "release 1.1.0 is installed, and an older one is not installed over it", "install", "--platform", filepath.Join(root(t), "examples/platform/1.0.0"))
	refused("PLT-021", "1.0.0 is older than 1.1.0", "upgrade", "--to", "1.0.0")
	refused("PLT-023", "upgrade to release 1.1.0: it is installed already", "upgrade", "--to", "1.1.0")
	require.Equal(t, after, facts(), "what is refused changes nothing")
	var s status
	require.NoError(t, json.Unmarshal([]byte(k.must(t, "status", "--output", "json").out), &s))
	require.Equal(t, []string{"Success", "1.1.0"}, []string{s.State, s.Platform}, "the deployment as it is")
	require.NotNil(t, s.Refused, "the run that was refused is told beside it")
	r = k.must(t, "install")
	require.Contains(t, r.err, "slipway: keeping the installed release 1.1.0, although ")
	require.Equal(t, after, facts(), "the configuration still names 1.0.0, or nothing")
	require.Regexp(t, `(?m)^`+k.Name+` +reference 1\.1\.0 +Success +install `, k.must(t, "list").out)
	require.NotEmpty(t, k.must(t, "logs", "infrastructure/preflight").out)
	require.Contains(t, k.must(t, "doctor").out, "\nno problems\n")
	require.Equal(t, "Success", k.shell(t, "kubectl get configmap -n slipway-system slipway-status -o 'jsonpath={.data.state}'"))
}
