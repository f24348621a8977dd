package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// stays prints what release 2.0.0 must leave as it is of the database, whose data it migrates, and
// the passwords: a line for each.
const stays = `
kubectl get pvc,statefulset,service,pod -n database -l app.kubernetes.io/name=database -o 'jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{"\n"}{end}'
for secret in gitea/gitea-admin gitea/gitea-keys argocd/argocd-redis database/database-owner database/database-reader guestbook/database-reader; do
  kubectl get secret -n "${secret%/*}" "${secret#*/}" -o 'jsonpath={.data}'
done | sha256sum
`

// named prints the Applications and what is left of the page that release 2.0.0 has no more.
const named = `
kubectl get applications -n argocd -o name
kubectl get deployment,service,configmap -n platform -l app.kubernetes.io/name=welcome -o name
kubectl get job,configmap -n database -o name | grep database-rows | wc -l
kubectl get application -n argocd root -o 'jsonpath={.spec.syncPolicy.automated}{"\n"}'
`

// writes is what somebody writes into the guestbook before it is upgraded.
const writes = `kubectl exec -n database database-0 -- sh -c 'PGPASSWORD="$(cat /etc/postgresql/owner/password)" psql -qh 127.0.0.1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -c "INSERT INTO entries (author, message) VALUES ('"'Mary', 'It was written before.'"')"'`

// adds is a push of one more file to the platform's repository.
const adds = `
git config --global http.sslVerify false
cd "$(mktemp -d)"
password=$(kubectl get secret -n gitea gitea-slipway -o 'jsonpath={.data.password}' | base64 -d)
git clone -q "https://slipway:$password@cluster/slipway/platform.git" .
git config user.name Mary
git config user.email mary@example.com
echo "the app guestbook is mine" > OWNERS
git add OWNERS
git commit -qm "say who owns what"
git push -q origin HEAD:main
`

// migrates brings the reference platform from release 1.1.0 to 2.0.0, which migrates data.
func (k *kept) migrates(t *testing.T) {
	t.Helper()
	const port = lifecyclePorts + "global: {scale: 100}\n"
	k = k.with(write(t, configured+port+`platform:
  release: 2.0.0
  components:
    guestbook: {values: {heading: Ours}}
`))
	k.shell(t, writes)
	before := k.shell(t, stays)
	require.Equal(t, 5, strings.Count(before, "\n"), before)

	plan := k.plans(t, "--to", "2.0.0", "--style", "in-place")
	require.Equal(t, "in-place", plan.Style)
	require.Equal(t, []string{"remove welcome"}, plan.of("components"))
	require.Equal(t, []string{"run entries"}, plan.of("backups"))
	require.Len(t, plan.of("migrations"), 2)
	require.True(t, slices.ContainsFunc(plan.Changes, func(c struct{ Of, Action, Name, Note string }) bool {
		return c.Of == "migrations" && strings.Contains(c.Note, "stopped meanwhile: Deployment guestbook/guestbook")
	}))
	require.Contains(t, plan.names(), "remove Deployment platform/welcome")
	require.Contains(t, plan.of("files"), "change root-app/slipway.yaml")
	require.NotContains(t, plan.of("files"), "remove OWNERS")
	require.Equal(t, before, k.shell(t, stays), "a plan changes nothing")

	k.shell(t, adds)
	stale := k.cli(t, "upgrade", "--to", "2.0.0", "--style", "in-place", "--approve", plan.Digest)
	require.Equal(t, 3, stale.code, slipway.Tail(stale.err))
	require.Contains(t, stale.err, "somebody has pushed to the Git repository slipway/platform")
	plan = k.plans(t, "--to", "2.0.0", "--style", "in-place")
	require.Contains(t, plan.of("files"), "remove OWNERS")
	r := k.must(t, "upgrade", "--to", "2.0.0", "--style", "in-place", "--approve", plan.Digest)
	require.Contains(t, r.out, "\nupgraded from 1.1.0 to 2.0.0 in ")
	require.Regexp(t, `(?m)^database\s+.*Synced\s+Healthy`, r.out)
	require.Equal(t, before, k.shell(t, stays), "nothing is made anew")
	require.Equal(t, `application.argoproj.io/base
application.argoproj.io/database
application.argoproj.io/guestbook
application.argoproj.io/root
2
{"prune":true,"selfHeal":true}
`, k.shell(t, named))
	require.NotContains(t, k.shell(t, `kubectl get applications.argoproj.io -A -o 'jsonpath={.items[*].metadata.annotations}'`), "skip-reconcile")
	require.Empty(t, k.shell(t, `kubectl get pods -A -l slipway.sh/data -o name`))
	entries := k.shell(t, `for i in $(seq 60); do curl -fsS http://cluster/api/entries && break; sleep 1; done`)
	for _, text := range []string{`"author":"Mary","message":"It was written before."`, "The slipway is greased."} {
		require.Contains(t, entries, text)
	}

	again := k.must(t, "install")
	require.Regexp(t, `(?m)^\s*orchestrator/sync\s+reused`, again.out)
}
