package e2e

import (
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// planned is what a plan says, as far as it is read here.
type planned struct {
	Digest        string
	Style         string
	Configuration []struct{ Path, Old, New string }
	Changes       []struct{ Of, Action, Name, Note string }
	Unknown       []struct{ What, Why string }
	Unchanged     int
	Release       struct{ From, To string }
	Later         []string
}

// of are the changes of a kind: "change ConfigMap argocd/argocd-cm".
func (p planned) of(kind string) []string {
	var out []string
	for _, c := range p.Changes {
		if c.Of == kind {
			out = append(out, c.Action+" "+c.Name)
		}
	}
	return out
}

// names are the objects that would change.
func (p planned) names() []string { return p.of("objects") }

// movesOn has the Terraform state be one that a later apply has left, by so many serials.
const movesOn = `file=$(ls /slipway/state/terraform/0*.tfstate | sort | tail -n 1)
serial=$(sed -n 's/^ *"serial": \([0-9]*\),*$/\1/p' "$file")
sed -i "s/\"serial\": $serial/\"serial\": $((serial + $BY))/" "$file"`

// decoded is a value of a Secret.
func decoded(t *testing.T, value string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(value)
	require.NoError(t, err)
	return string(text)
}

// plans follows plans on a running cluster that is as it should be: one without changes, one
// with exactly those that were made, and approvals of plans that are stale or hold.
func plans(t *testing.T, kubectl onCluster, run func(t *testing.T, command string, args ...string) result, push func(*testing.T)) {
	plan := func(t *testing.T, exit int, args ...string) planned {
		t.Helper()
		r := run(t, "plan", append([]string{"--output", "json", "--detailed-exitcode"}, args...)...)
		require.Equal(t, exit, r.code, "%s\n%s", r.out, slipway.Tail(r.err))
		secrets := kubectl(t, "get", "secrets", "-A", "-o", `jsonpath={range .items[*].data}{.password}{"\n"}{end}`)
		for secret := range strings.Lines(secrets) {
			if secret = strings.TrimSpace(secret); secret != "" {
				require.NotContains(t, r.out, decoded(t, secret))
			}
		}
		var p planned
		require.NoError(t, json.Unmarshal([]byte(r.out), &p))
		t.Logf("plan: %d objects unchanged, %d unknown, after %s", p.Unchanged, len(p.Unknown), r.took.Round(10*time.Millisecond))
		return p
	}
	none := plan(t, 0)
	require.Empty(t, none.Unknown)
	require.Greater(t, none.Unchanged, 50)
	require.Contains(t, run(t, "plan").out, "no changes")
	path := plan(t, 2, "upgrade", "--to", "2.0.0", "--style", "in-place")
	require.Equal(t, "1.1.0", path.Release.To)
	require.Equal(t, "in-place", path.Style)
	require.Equal(t, []string{"add welcome"}, path.of("components"))
	require.Empty(t, path.of("backups"), "release 1.1.0 has no data")
	require.Equal(t, []string{"2.0.0"}, path.Later)
	r := run(t, "upgrade", "--to", "2.0.0", "--approve", path.Digest)
	require.Equal(t, 2, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "give --to 1.1.0 with --approve")
	r = run(t, "upgrade", "--to", "1.1.0", "--approve", path.Digest)
	require.Equal(t, 3, r.code, slipway.Tail(r.err))
	require.Contains(t, r.err, "PLN-001")
	require.Contains(t, r.err, "the style is graceful, not in-place")
	require.Contains(t, r.err, "slipway plan upgrade --to 1.1.0", "the plan that the remedy makes is one of the same upgrade")
	require.Empty(t, plan(t, 0).names(), "an upgrade that is refused has begun nothing")

	kubectl(t, "patch", "configmap", "-n", "argocd", "argocd-cm", "--type", "merge", "-p", `{"data":{"timeout.reconciliation":"1h"}}`)
	proxied := write(t, configured+"proxy: {http: 'http://proxy.example.com:3128'}\n")
	two := plan(t, 2, "--config", proxied)
	require.Contains(t, two.names(), "change ConfigMap argocd/argocd-cm")
	require.Contains(t, two.names(), "change ConfigMap argocd/outgoing-proxy")
	for _, name := range two.names() {
		require.Regexp(t, `^change \w+ argocd/`, name) // its pods start again with the proxy
	}
	require.Equal(t, "proxy.http", two.Configuration[0].Path)
	require.Empty(t, two.of("applications"))
	require.Empty(t, two.of("files"))

	stale := func(t *testing.T, says string, args ...string) {
		t.Helper()
		r := run(t, "install", append([]string{"--approve", two.Digest}, args...)...)
		require.Equal(t, 3, r.code, slipway.Tail(r.err))
		require.Contains(t, r.err, "PLN-001")
		require.Contains(t, r.err, says)
		require.Contains(t, r.err, "nothing was changed")
	}
	kubectl(t, "label", "service", "-n", "gitea", "gitea", "by=hand")
	stale(t, "Service gitea/gitea was edited", "--config", proxied)
	kubectl(t, "label", "service", "-n", "gitea", "gitea", "by-")
	stale(t, "the configuration has changed")
	newer := filepath.Join(root(t), "examples/platform/1.1.0")
	stale(t, "the platform release is reference 1.1.0, not reference 1.0.0", "--config", proxied, "--platform", newer)

	serials := func(by string) {
		t.Helper()
		r := run(t, "toolchain", "--", "env", "BY="+by, "sh", "-ceu", movesOn)
		require.Zero(t, r.code, slipway.Tail(r.err))
	}
	serials("1")
	stale(t, "the Terraform state has moved on", "--config", proxied)
	serials("-1")

	r = run(t, "install", "--config", proxied, "--approve", two.Digest)
	require.Zero(t, r.code, slipway.Tail(r.err))
	require.NotEqual(t, "1h", kubectl(t, "get", "configmap", "-n", "argocd", "argocd-cm", "-o", `jsonpath={.data.timeout\.reconciliation}`))
	require.Empty(t, plan(t, 0, "--config", proxied).names())
	report := filepath.Join(t.TempDir(), "report")
	require.Zero(t, run(t, "report", "--out", report).code)
	require.Contains(t, read(t, report, "report.html"), two.Digest)

	two = plan(t, 2) // the proxy goes again
	push(t)
	stale(t, "somebody has pushed to the Git repository slipway/platform")
	require.Zero(t, run(t, "install").code)
	require.Empty(t, plan(t, 0).names())
}
