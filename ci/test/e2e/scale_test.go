package e2e

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sql is a shell function that asks the guestbook's database.
const sql = `
sql() {
  kubectl exec -n database database-0 -- sh -c \
    'PGPASSWORD="$(cat "$POSTGRES_PASSWORD_FILE")" exec psql -h 127.0.0.1 -U "$POSTGRES_USER" -d guestbook -qtAc "$1"' sh "$1"
}
`

// sized prints what a changed scale changes, and what it must leave alone: a line for each.
const sized = sql + `
for n in database gitea; do kubectl get pvc -n $n -l '!slipway.sh/workload' --no-headers -o 'custom-columns=N:.metadata.namespace,M:.metadata.name,R:.spec.resources.requests.storage' | tr -s ' '; done
kubectl get deployment -n guestbook guestbook -o 'jsonpath={.spec.replicas} of {.status.readyReplicas}{"\n"}'
kubectl get statefulset -n database database -o 'jsonpath={.spec.template.spec.containers[0].resources.limits.memory}{"\n"}'
kubectl get pvc -A --no-headers -o 'custom-columns=U:.metadata.uid,V:.spec.volumeName' | sha256sum
sql "SELECT count(*), md5(string_agg(e::text, chr(10) ORDER BY id)) FROM entries e WHERE author <> 'writer'"
`

// scales makes the running deployment, at scale 50, carry more: k's configuration says 100.
func (k *kept) scales(t *testing.T) {
	t.Helper()
	facts := func() []string { return strings.Split(strings.TrimSpace(k.shell(t, sized)), "\n") }
	k.shell(t, sql+`sql "INSERT INTO entries (author, message) VALUES ('Mary', 'She carries more.')"`)
	before := facts()
	require.Len(t, before, 6)
	require.Equal(t, []string{"database data-database-0 1Gi", "gitea gitea 1Gi", "1 of 1", "512Mi"}, before[:4])
	require.Regexp(t, `^4\|`, before[5])

	r := k.must(t, "install")
	requireInstalled(t, r)
	require.Regexp(t, `(?m)^\s*infrastructure/terraform\s+reused`, r.out)
	after := facts()
	require.Len(t, after, 6)
	require.Equal(t, []string{"database data-database-0 20Gi", "gitea gitea 10Gi", "2 of 2", "2Gi"}, after[:4])
	require.Equal(t, before[4:], after[4:], "claims, volumes and rows are those from before")
	requireInstalled(t, k.must(t, "install"))
	require.Equal(t, after, facts())
	k.installsFromItself(t)
}
