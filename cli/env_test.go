package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/source"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/answers"
)

// sourced is what a shell makes of variables.
func sourced(t *testing.T, text string, names ...string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "env")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	script := `eval "$(cat "$1")"; shift; for name; do eval "printf '%s\0' \"\$$name\""; done`
	cmd := exec.Command("sh", append([]string{"-euc", script, "sh", file}, names...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	require.NoError(t, err)
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

func TestTheVariablesOfADeployment(t *testing.T) {
	keptDeployments(t, `provider: aws
aws: {region: eu-central-1, vpcId: vpc-0123456789abcdef0, roles: [], jumpHost: {allow: [192.0.2.0/24, 198.51.100.0/24]}}
local: {ports: [80, 443]}
platform:
  components: {web: {enabled: false}, data-base: {enabled: true, values: {replicas: 2}}}
  settings: {theme: dark, brand: {name: x}}
hooks:
  - {name: a, before: workflow, script: "true", env: {A: b}}
state: {url: "s3://bucket?region=eu-central-1", credentials: {AWS_SECRET_ACCESS_KEY: "env:B", AWS_ACCESS_KEY_ID: "env:A"}}
proxy: {noProxy: ".example.com,10.0.0.0/8"}
`, "staging")
	code, out, errs := slipway("env", "--name", "staging")
	require.Zero(t, code, errs)
	require.Empty(t, errs)
	require.Equal(t, `export SLIPWAY_DEPLOYMENT='staging'
export SLIPWAY_CONFIG_ADVANCED_MISSING_IMAGES='refuse'
export SLIPWAY_CONFIG_ADVANCED_TIMEOUTS_APP='5m'
export SLIPWAY_CONFIG_ADVANCED_TIMEOUTS_STEP='20m'
export SLIPWAY_CONFIG_API_VERSION='slipway.sh/v1'
export SLIPWAY_CONFIG_AWS_JUMP_HOST_ALLOW='192.0.2.0/24,198.51.100.0/24'
export SLIPWAY_CONFIG_AWS_REGION='eu-central-1'
export SLIPWAY_CONFIG_AWS_VPC_ID='vpc-0123456789abcdef0'
export SLIPWAY_CONFIG_GLOBAL_ADMIN_EMAIL='admin@slipway.test'
export SLIPWAY_CONFIG_GLOBAL_DOMAIN='slipway.test'
export SLIPWAY_CONFIG_GLOBAL_NAME='staging'
export SLIPWAY_CONFIG_GLOBAL_SCALE='50'
export SLIPWAY_CONFIG_LOCAL_PORTS='80,443'
export SLIPWAY_CONFIG_PLATFORM_COMPONENTS_DATA_BASE_ENABLED='true'
export SLIPWAY_CONFIG_PLATFORM_COMPONENTS_WEB_ENABLED='false'
export SLIPWAY_CONFIG_PLATFORM_RELEASE='1.0.0'
export SLIPWAY_CONFIG_PROVIDER='aws'
export SLIPWAY_CONFIG_PROXY_NO_PROXY='.example.com,10.0.0.0/8'
export SLIPWAY_CONFIG_STATE_CREDENTIALS='AWS_ACCESS_KEY_ID=env:A,AWS_SECRET_ACCESS_KEY=env:B'
export SLIPWAY_CONFIG_STATE_URL='s3://bucket?region=eu-central-1'
export SLIPWAY_CONFIG_TLS_MODE='self-signed'
`, out)

	code, out, errs = slipway("env", "--name", "new")
	require.Zero(t, code, errs)
	require.NotContains(t, out, "SLIPWAY_DEPLOYMENT", "it is not kept")
	require.Contains(t, out, "export SLIPWAY_CONFIG_GLOBAL_NAME='new'\n")

	_, out, _ = slipway("env", "--help")
	require.Contains(t, out, "Other lists and mappings, such as hooks, and")
}

// Every value in effect is there, as slipway config explain shows it.
func TestVariablesAreTheEffectiveValues(t *testing.T) {
	cfg, err := config.Load([]byte("apiVersion: slipway.sh/v1\nsmtp: {host: mail.example.com, from: a@example.com}\nlocal: {ports: [80]}\n"), config.Options{DefaultProvider: "local"})
	require.NoError(t, err)
	all, unfit, err := variables(cfg, answers.NewSchema(config.Describe(program().Providers.Sections()), nil))
	require.NoError(t, err)
	require.Empty(t, unfit)
	got := map[string]string{}
	for _, v := range all {
		got[v.name] = v.value
	}
	settings, err := cfg.Explain()
	require.NoError(t, err)
	want := map[string]string{}
	for _, s := range settings {
		if s.Value != "{}" {
			want[config.EnvName(s.Path)] = strings.Trim(s.Value, "[]")
		}
	}
	require.Equal(t, want, got)
	require.Equal(t, "587", got["SLIPWAY_CONFIG_SMTP_PORT"])
}

func TestAShellReadsOddValuesBack(t *testing.T) {
	odd := []string{
		"plain", "two words", "it's", `'; touch /tmp/x; '`, "$(touch x) `touch x` $HOME ${X}", `back\slash \n \'`,
		"line 1\nline 2\n", "\n", "tab\tand \r\n", "\"double\"", "*?[a]~#!&|<>(){};", "ünïcode \u2028 \U0001f6a2", "-n", "''", "a'\n'b", "\x01\x1b\x7f",
	}
	var all []variable
	var names []string
	for i, value := range odd {
		names = append(names, fmt.Sprintf("SLIPWAY_TEST_%d", i))
		all = append(all, variable{names[i], value})
	}
	var out strings.Builder
	require.NoError(t, export(&out, all))
	require.Equal(t, odd, sourced(t, out.String(), names...))
}

// A certificate has several lines, of which slipway config explain shows the first.
func TestAShellReadsACertificateBack(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	of := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, of, of, key.Public(), key)
	require.NoError(t, err)
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	keptDeployments(t, fmt.Sprintf("tls: {mode: given, certificate: %q, key: \"file:it's $HOME/a key\"}\n", certificate), "staging")
	code, out, errs := slipway("env", "--name", "staging")
	require.Zero(t, code, errs)
	require.Equal(t, []string{certificate, "file:it's $HOME/a key", "staging"},
		sourced(t, out, "SLIPWAY_CONFIG_TLS_CERTIFICATE", "SLIPWAY_CONFIG_TLS_KEY", source.EnvDeployment))
}

// A configuration says where secrets are, and nothing looks there.
func TestNoSecretIsInTheVariables(t *testing.T) {
	const canary = "canary-3f9a"
	file := filepath.Join(t.TempDir(), "key")
	require.NoError(t, os.WriteFile(file, []byte(canary), 0o600))
	t.Setenv("SLIPWAY_TEST_SECRET", canary)
	text := `smtp: {host: mail.example.com, from: a@example.com, username: a, password: "env:SLIPWAY_TEST_SECRET"}
observability: {endpoint: "https://metrics.example.com", username: a, password: "cmd:cat ` + file + `"}
hooks:
  - {name: a, before: workflow, script: "true", secrets: {TOKEN: "env:SLIPWAY_TEST_SECRET"}}
state: {url: "s3://bucket?region=eu-central-1", key: "file:` + file + `", credentials: {AWS_SECRET_ACCESS_KEY: "env:SLIPWAY_TEST_SECRET"}}
`
	keptDeployments(t, text, "staging")
	code, out, errs := slipway("env", "--name", "staging")
	require.Zero(t, code, errs)
	require.NotContains(t, out+errs, canary)
	require.Equal(t, []string{"env:SLIPWAY_TEST_SECRET", "cmd:cat " + file, "file:" + file, "AWS_SECRET_ACCESS_KEY=env:SLIPWAY_TEST_SECRET"},
		sourced(t, out, "SLIPWAY_CONFIG_SMTP_PASSWORD", "SLIPWAY_CONFIG_OBSERVABILITY_PASSWORD", "SLIPWAY_CONFIG_STATE_KEY", "SLIPWAY_CONFIG_STATE_CREDENTIALS"))

	// One that stands where a reference should is refused, and not shown.
	keptDeployments(t, strings.ReplaceAll(text, "env:SLIPWAY_TEST_SECRET", canary), "staging")
	for _, args := range [][]string{{"env", "--name", "staging"}, {"validate", "--name", "staging"}, {"use"}} {
		_, out, errs = slipway(args...)
		require.NotContains(t, out+errs, canary)
	}
}

func TestWhatAVariableCannotHoldIsLeftOut(t *testing.T) {
	keptDeployments(t, `state: {url: "s3://bucket?region=eu-central-1", credentials: {AWS_SECRET_ACCESS_KEY: "cmd:pass a,b"}}
proxy: {noProxy: "a.example.com"}
aws: {roles: ["a,b", c]}
`, "staging")
	code, out, errs := slipway("env", "--name", "staging")
	require.Zero(t, code, errs)
	for _, path := range []string{"state.credentials", "aws.roles"} {
		require.Contains(t, errs, "slipway: "+path+" is left out: ")
		require.NotContains(t, out, config.EnvName(path)+"=")
	}
	require.Contains(t, out, "PROXY_NO_PROXY='a.example.com'")
}
