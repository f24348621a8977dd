package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/console"
	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/fault"
)

func TestValidateAsksThePlatformToo(t *testing.T) {
	for text, says := range map[string]string{
		"platform: {release: 9.9.9}\n": "PLT-002", "platform: {release: ./nowhere}\n": "CFG-003", "platform: {components: {databse: {enabled: false}}}\n": "PLT-003",
		"platform: {components: {database: {enabled: false}}}\n": "PLT-003", "platform: {settings: {a: 1}}\n": "PLT-003",
	} {
		code, _, errs := slipway("validate", "--config", configFile(t, "apiVersion: slipway.sh/v1\n"+text))
		require.Equal(t, 2, code, text)
		require.Contains(t, errs, says)
	}
}

// TestValidateWarnsOfSecretsInClear: that is no error.
func TestValidateWarnsOfSecretsInClear(t *testing.T) {
	file := configFile(t, "apiVersion: slipway.sh/v1\nhooks:\n  - {name: a, before: workflow, run: [x], env: {DB_PASSWORD: c4nary}}\nplatform: {components: {guestbook: {values: {title: x, adminPassword: c4nary}}}}\n")
	code, out, errs := slipway("validate", "--config", file)
	require.NotContains(t, out+errs, "c4nary")
	require.Contains(t, errs, "warning: line 3: hooks[0].env.DB_PASSWORD: what looks like a secret, and is in clear: hooks[0].secrets is for secrets\n")
	require.Contains(t, errs, "warning: line 4: platform.components.guestbook.values.adminPassword: what looks like a secret, and is in clear: ")
	require.Zero(t, code, errs)
	require.Contains(t, out, "valid: ")

	written := filepath.Join(t.TempDir(), "slipway.yaml")
	code, _, errs = slipway("configure", "--file", file, "--set", "global.name=a", "--set", "global.scale=50", "--out", written)
	require.Zero(t, code, errs)
	require.Contains(t, errs, "platform.components.guestbook.values.adminPassword: what looks like a secret")
	require.FileExists(t, written)
}

// inVain is what validate says of the reference platform on provider local.
const inVain = "note: the cluster of provider local enforces no NetworkPolicy, so every Pod reaches the Pods of base, database, gitea, guestbook\n"

// TestValidateSaysWhichNetworkPoliciesAreInVain: those in a cluster that Slipway runs.
func TestValidateSaysWhichNetworkPoliciesAreInVain(t *testing.T) {
	withoutImages(t)
	code, _, errs := slipway("validate")
	require.Zero(t, code, errs)
	require.Contains(t, errs, inVain)
	code, _, errs = slipway("validate", "--config", theirs(t, ""), "--lock", lockFile(t, "registry.example.com/team"))
	require.Zero(t, code, errs)
	require.NotContains(t, errs, "NetworkPolicy", "others may enforce them")
}

// TestValidateWarnsOfWhatAPushMayBring: that is no error.
func TestValidateWarnsOfWhatAPushMayBring(t *testing.T) {
	withoutImages(t)
	dir := filepath.Join(t.TempDir(), "mine")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "examples", "platform", "1.0.0"))))
	file := filepath.Join(dir, "platform.yaml")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), "  project:\n")
	require.True(t, found)
	_, rest, found = strings.Cut(rest, "\nguidance:")
	require.True(t, found)
	require.NoError(t, os.WriteFile(file, []byte(before+"  project:\n    clusterKinds: [rbac.authorization.k8s.io/ClusterRoleBinding]\nguidance:"+rest), 0o600))
	at := func(line int) string {
		return fmt.Sprintf("warning: %s, line %d: gitops.project.", file, strings.Count(before, "\n")+line)
	}
	code, out, errs := slipway("validate", "--platform", dir)
	require.Zero(t, code, errs)
	require.Contains(t, errs, at(2)+`clusterKinds[0]: got rbac.authorization.k8s.io/ClusterRoleBinding, by which whoever may push to the tree changes who may do what in the whole cluster`)
	require.Contains(t, errs, at(1)+"kinds: got nothing, so that a push to the tree may bring objects of any kind into the namespaces of the apps")
	require.Contains(t, out, "valid: ")
}

func TestValidateNamesAProviderThatCannotInstall(t *testing.T) {
	code, out, errs := slipway("validate", "--config", configFile(t, "apiVersion: slipway.sh/v1\nprovider: aws\naws: {region: eu-central-1}\n"))
	require.Zero(t, code, errs)
	require.Equal(t, "valid: deployment slipway on aws, platform reference 1.0.0   (nothing can be installed to aws yet)\n", out)
}

func TestAConfigurationThatCannotBeRead(t *testing.T) {
	for what, path := range map[string]string{"no file": "/does/not/exist.yaml", "a directory": t.TempDir()} {
		t.Run(what, func(t *testing.T) {
			code, _, errs := slipway("validate", "--config", path)
			require.Equal(t, 2, code, errs)
			require.Contains(t, errs, "CFG-003")
			require.Contains(t, errs, path)
		})
	}
}

// TestValidateFindsAKeyInTheSecrets: as an install does, before the environment.
func TestValidateFindsAKeyInTheSecrets(t *testing.T) {
	leaf := func() certificate.Pair {
		ca, err := certificate.NewCA("given", time.Now())
		require.NoError(t, err)
		leaf, err := certificate.NewLeaf(ca, []string{"*.example.org"}, time.Now())
		require.NoError(t, err)
		return leaf
	}
	shown := leaf()
	text := "apiVersion: slipway.sh/v1\nglobal: {domain: example.org}\ntls:\n  mode: given\n  key: env:SITE_TLS_KEY\n  certificate: |\n" +
		"    " + strings.ReplaceAll(strings.TrimSpace(string(shown.Certificate)), "\n", "\n    ") + "\n"
	file, given := configFile(t, text), filepath.Join(t.TempDir(), "secrets.env")
	for want, key := range map[int][]byte{0: shown.Key, 2: leaf().Key} {
		require.NoError(t, os.WriteFile(given, []byte(`SITE_TLS_KEY="`+strings.ReplaceAll(string(key), "\n", `\n`)+`"`+"\n"), 0o600))
		code, _, errs := slipway("validate", "--config", file, "--secrets", given)
		require.Equal(t, want, code, errs)
		require.Equal(t, want != 0, strings.Contains(errs, "the private key does not belong to the certificate"), errs)
	}
	code, _, errs := slipway("validate", "--config", file, "--secrets", given+".none")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "error CFG-013")
}

func TestValidateJudgesAGivenCertificate(t *testing.T) {
	key := filepath.Join(t.TempDir(), "tls.key")
	pair := func(names []string, made time.Time) certificate.Pair {
		ca, err := certificate.NewCA("given", made)
		require.NoError(t, err)
		leaf, err := certificate.NewLeaf(ca, names, made)
		require.NoError(t, err)
		return leaf
	}
	good, ours := pair([]string{"*.example.org"}, time.Now()), []string{"*.example.org"}
	for what, c := range map[string]struct {
		shown certificate.Pair
		key   []byte
		says  string
	}{
		"good":        {good, good.Key, ""},
		"no key here": {good, nil, ""},
		"another key": {good, pair(ours, time.Now()).Key, "the private key does not belong to the certificate"},
		"expired":     {pair(ours, time.Now().AddDate(-2, 0, 0)), nil, "the certificate expired on "},
		"elsewhere":   {pair([]string{"*.example.net"}, time.Now()), nil, "the certificate is not for gitea.example.org"},
	} {
		t.Run(what, func(t *testing.T) {
			require.NoError(t, os.RemoveAll(key))
			if c.key != nil {
				require.NoError(t, os.WriteFile(key, c.key, 0o600))
			}
			text := "apiVersion: slipway.sh/v1\nglobal: {domain: example.org}\ntls:\n  mode: given\n  key: file:" + key + "\n  certificate: |\n" +
				"    " + strings.ReplaceAll(strings.TrimSpace(string(c.shown.Certificate)), "\n", "\n    ") + "\n"
			code, _, errs := slipway("validate", "--config", configFile(t, text))
			if c.says == "" {
				require.Zero(t, code, errs)
				return
			}
			require.Equal(t, 2, code, errs)
			require.Contains(t, errs, "PRE-004")
			require.Contains(t, errs, c.says)
		})
	}
}

// TestTheFieldsAreThoseOfTheNodesKubernetes: the library that knows them is of its minor version.
func TestTheFieldsAreThoseOfTheNodesKubernetes(t *testing.T) {
	version, err := source.KubernetesVersion()
	require.NoError(t, err)
	_, minor, _ := strings.Cut(version, ".")
	minor, _, _ = strings.Cut(minor, ".")
	require.NotEmpty(t, minor)
	text, err := os.ReadFile("../go.mod")
	require.NoError(t, err)
	require.Contains(t, string(text), "\tk8s.io/api v0."+minor+".")
}

// A command that renders ends while a template runs, and not with it.
func TestRenderingEndsWithTheCommand(t *testing.T) {
	withoutImages(t)
	dir := t.TempDir()
	for name, text := range map[string]string{
		"platform.yaml":               "{apiVersion: slipway/v2, name: p, version: 1.0.0, namespaces: [{name: shop}], components: [{name: web, kind: chart, path: charts/web, namespace: shop}]}",
		"charts/web/Chart.yaml":       "{apiVersion: v2, name: web, version: 1.0.0}",
		"charts/web/templates/a.yaml": "{{ range until 9000 }}{{ range until 9000 }}{{ end }}{{ end }}{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	for _, command := range [][]string{{"validate"}, {"platform", "render"}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(150*time.Millisecond, func() { cancel(console.Interrupted("run", "run it again")) })
		var out, errs bytes.Buffer
		code := Run(ctx, program(), append(command, "--platform", dir), strings.NewReader(""), &out, &errs)
		require.Equal(t, int(fault.Cancelled), code, errs.String())
		require.Contains(t, errs.String(), "interrupted")
	}
}
