package kubeconfig_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/fault"
)

// canary is wherever a kubeconfig has a credential.
const canary = "hunter2-hunter2"

// several is a kubeconfig with two contexts, of which one names files.
const several = `
apiVersion: v1
kind: Config
current-context: files
preferences: {}
clusters:
- name: one
  cluster: {server: "https://one.example.com:6443", certificate-authority: ca.crt, tls-server-name: kubernetes, extensions: [{name: x, extension: {a: 1}}]}
- name: two
  cluster: {server: "https://two.example.com", certificate-authority-data: Y2E=}
contexts:
- {name: files, context: {cluster: one, user: filed, namespace: mine}}
- {name: plain, context: {cluster: two, user: plain}}
users:
- name: filed
  user: {client-certificate: /pki/me.crt, client-key: /pki/me.key, tokenFile: token, token: stale-` + canary + `}
- name: plain
  user: {token: ` + canary + `, as: deployer}
`

// files are those that several names.
func files(name string) ([]byte, error) {
	text, ok := map[string]string{"ca.crt": "the CA", "/pki/me.crt": "the certificate", "/pki/me.key": "the key", "token": "from-a-file\n"}[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func TestOneContextThatNeedsNothingElse(t *testing.T) {
	for _, context := range []string{"", "files"} {
		text, err := kubeconfig.Extract([]byte(several), context, files)
		require.NoError(t, err)
		coded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
		require.YAMLEq(t, fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: files
clusters:
- name: files
  cluster: {server: "https://one.example.com:6443", certificate-authority-data: %q, tls-server-name: kubernetes}
contexts:
- {name: files, context: {cluster: files, user: files}}
users:
- {name: files, user: {client-certificate-data: %q, client-key-data: %q, token: from-a-file}}
`, coded("the CA"), coded("the certificate"), coded("the key")), string(text))
		require.ElementsMatch(t, []string{"from-a-file", coded("the key"), "the key"}, secrets(text))
	}
	text, err := kubeconfig.Extract([]byte(several), "plain", nil)
	require.NoError(t, err)
	require.NotContains(t, string(text), "one.example.com")
	require.Contains(t, string(text), "as: deployer")
	require.Equal(t, []string{canary}, secrets(text))
}

func TestWhatIsThereAsDataIsNotRead(t *testing.T) {
	text, err := kubeconfig.Extract([]byte(of("{server: 'https://a', certificate-authority: gone.crt, certificate-authority-data: Y2E=}", "{}")), "", nil)
	require.NoError(t, err)
	require.NotContains(t, string(text), "gone.crt")
}

// of is a kubeconfig with one context.
func of(cluster, user string) string {
	return fmt.Sprintf("clusters: [{name: c, cluster: %s}]\nusers: [{name: u, user: %s}]\ncontexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n", cluster, user)
}

func TestAKubeconfigThatCannotBeUsed(t *testing.T) {
	const cluster = "{server: 'https://a.example.com'}"
	for name, c := range map[string]struct {
		text, context string
		code          fault.Code
		says, fix     string
	}{
		"no YAML":          {"users: [{name: u, user: {token: " + canary, "", kubeconfig.CodeInvalid, "read the kubeconfig: it is not YAML as kubectl writes it (line 1)", "--raw --minify"},
		"a token alone":    {canary, "", kubeconfig.CodeInvalid, "it is not YAML as kubectl writes it", ""},
		"nothing":          {"{}", "", kubeconfig.CodeInvalid, "it has no context", ""},
		"another context":  {several, "prod", kubeconfig.CodeContext, "it has no context prod, but files, plain", "as context"},
		"no current one":   {"contexts: [{name: b, context: {}}, {name: a, context: {}}]", "", kubeconfig.CodeContext, "it has no current context, but a, b", "as context"},
		"a missing server": {of("{}", "{}"), "", kubeconfig.CodeInvalid, "the cluster's server is not a URL", ""},
		"no cluster":       {"contexts: [{name: a, context: {cluster: c, user: u}}]\ncurrent-context: a", "", kubeconfig.CodeInvalid, `context a is for the cluster "c", which it does not have`, ""},
		"no user":          {"clusters: [{name: c, cluster: " + cluster + "}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]\ncurrent-context: a", "", kubeconfig.CodeInvalid, `context a is for the user "u"`, ""},
		"exec": {of(cluster, "{exec: {command: aws, args: [eks, get-token], env: [{name: A, value: "+canary+"}]}}"), "", kubeconfig.CodePlugin,
			"its user gets credentials from a program (exec: aws)", "kubectl create clusterrolebinding slipway --clusterrole=cluster-admin --serviceaccount=kube-system:slipway --context=x; "},
		"auth-provider": {of(cluster, "{auth-provider: {name: gcp, config: {access-token: "+canary+"}}}"), "", kubeconfig.CodePlugin, "(auth-provider: gcp)", `kubectl config set-credentials slipway --token="$(kubectl create token slipway -n kube-system --duration=24h --context=x)"`},
		"a file":        {of("{server: 'https://a', certificate-authority: /gone/ca.crt}", "{}"), "", kubeconfig.CodeFile, "clusters: certificate-authority names the file /gone/ca.crt: file does not exist", "--context=NAME does so for certificates and keys; put what a tokenFile holds into token"},
		"loopback":      {of("{server: 'https://127.0.0.1:6443'}", "{}"), "", kubeconfig.CodeLoopback, "server is 127.0.0.1:6443, this machine: steps run in containers", "tls-server-name: 127.0.0.1"},
		"localhost":     {of("{server: 'https://localhost:6443'}", "{}"), "", kubeconfig.CodeLoopback, "server is localhost:6443", ""},
		"IPv6 loopback": {of("{server: 'https://[::1]:6443'}", "{}"), "", kubeconfig.CodeLoopback, "server is [::1]:6443", ""},
		"a proxy":       {of("{server: 'https://a', proxy-url: 'http://localhost:3128'}", "{}"), "", kubeconfig.CodeLoopback, "proxy-url is localhost:3128", "containers reach as proxy-url into a copy of the kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubeconfig.Extract([]byte(c.text), c.context, files)
			require.ErrorIs(t, err, &fault.Fault{Code: c.code})
			require.Equal(t, fault.Usage, fault.ClassOf(err))
			require.ErrorContains(t, err, c.says)
			f, _ := errors.AsType[*fault.Fault](err)
			require.Contains(t, f.Fix, c.fix)
			require.NotContains(t, err.Error()+f.Fix, canary)
		})
	}
}

// A kubeconfig that is no file itself names files of nobody knows which machine.
func TestFilesOfAKubeconfigThatIsNoFile(t *testing.T) {
	_, err := kubeconfig.Extract([]byte(several), "", nil)
	for _, field := range []string{"clusters: certificate-authority", "users: client-certificate", "users: client-key", "users: tokenFile"} {
		require.ErrorContains(t, err, field+" names the file")
	}
	require.ErrorIs(t, err, &fault.Fault{Code: kubeconfig.CodeFile})
	require.ErrorContains(t, err, "only where the kubeconfig is one itself")
}

// secrets are what is hidden of a kubeconfig.
func secrets(text []byte) (out []string) {
	kubeconfig.Secrets(text, func(credential string) { out = append(out, credential) })
	return out
}

func TestSecretsOfWhatIsNotUnderstood(t *testing.T) {
	require.Equal(t, []string{"["}, secrets([]byte("[")))
	text, err := yaml.Marshal(map[string]any{"users": []any{map[string]any{"user": map[string]any{"password": canary}}}})
	require.NoError(t, err)
	require.Equal(t, []string{canary}, secrets(text))
}
