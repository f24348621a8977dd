package kubeconfig_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config/certificate"
	"github.com/slipway-sh/slipway/config/kubeconfig"
	"github.com/slipway-sh/slipway/fault"
)

// canary is wherever a kubeconfig has a credential.
const canary = "hunter2-hunter2"

// authority is a CA, and me a certificate of its with a key.
var authority, me = func() (ca, leaf certificate.Pair) {
	ca, err := certificate.NewCA("demo", time.Now())
	if err == nil {
		leaf, err = certificate.NewLeaf(ca, []string{"me"}, time.Now())
	}
	if err != nil {
		panic(err)
	}
	return ca, leaf
}()

func coded(text []byte) string { return base64.StdEncoding.EncodeToString(text) }

// several is a kubeconfig with two contexts, of which one names files.
var several = `
apiVersion: v1
kind: Config
current-context: files
preferences: {}
clusters:
- name: one
  cluster: {server: "https://one.example.com:6443", certificate-authority: ca.crt, tls-server-name: kubernetes, extensions: [{name: x, extension: {a: 1}}]}
- name: two
  cluster: {server: "https://two.example.com", certificate-authority-data: ` + coded(authority.Certificate) + `}
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
	text, ok := map[string]string{"ca.crt": string(authority.Certificate), "/pki/me.crt": string(me.Certificate), "/pki/me.key": string(me.Key), "token": "from-a-file\n"}[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func TestOneContextThatNeedsNothingElse(t *testing.T) {
	for _, context := range []string{"", "files"} {
		text, err := kubeconfig.Extract([]byte(several), context, files)
		require.NoError(t, err)
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
`, coded(authority.Certificate), coded(me.Certificate), coded(me.Key)), string(text))
		require.ElementsMatch(t, []string{"from-a-file", coded(me.Key), string(me.Key)}, secrets(text))
	}
	text, err := kubeconfig.Extract([]byte(several), "plain", nil)
	require.NoError(t, err)
	require.NotContains(t, string(text), "one.example.com")
	require.Contains(t, string(text), "as: deployer")
	require.Equal(t, []string{canary}, secrets(text))
}

func TestWhatIsThereAsDataIsNotRead(t *testing.T) {
	text, err := kubeconfig.Extract([]byte(of("{server: 'https://a', certificate-authority: gone.crt, certificate-authority-data: "+coded(authority.Certificate)+"}", "{}")), "", nil)
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
		"no YAML":                   {"users: [{name: u, user: {token: " + canary, "", kubeconfig.CodeInvalid, "read the kubeconfig: it is not YAML as kubectl writes it (line 1)", "--raw --minify"},
		"a token alone":             {canary, "", kubeconfig.CodeInvalid, "it is not YAML as kubectl writes it", ""},
		"nothing":                   {"{}", "", kubeconfig.CodeInvalid, "it has no context", ""},
		"another context":           {several, "prod", kubeconfig.CodeInvalid, "it has no context prod, but files, plain", "as context"},
		"no current one":            {"contexts: [{name: b, context: {}}, {name: a, context: {}}]", "", kubeconfig.CodeInvalid, "it has no current context, but a, b", "as context"},
		"a server without a scheme": {of("{server: '192.0.2.1:6443'}", "{}"), "", kubeconfig.CodeInvalid, "the cluster's server is not a URL", ""},
		"a missing server":          {of("{}", "{}"), "", kubeconfig.CodeInvalid, "the cluster's server is not a URL", ""},
		"no cluster":                {"contexts: [{name: a, context: {cluster: c, user: u}}]\ncurrent-context: a", "", kubeconfig.CodeInvalid, `context a is for the cluster "c", which it does not have`, ""},
		"no user":                   {"clusters: [{name: c, cluster: " + cluster + "}]\ncontexts: [{name: a, context: {cluster: c, user: u}}]\ncurrent-context: a", "", kubeconfig.CodeInvalid, `context a is for the user "u"`, ""},
		"exec": {of(cluster, "{exec: {command: aws, args: [eks, get-token], env: [{name: A, value: "+canary+"}]}}"), "", kubeconfig.CodePlugin,
			"its user gets credentials from a program (exec: aws)", "kubectl create clusterrolebinding slipway --clusterrole=cluster-admin --serviceaccount=kube-system:slipway --context=x; "},
		"auth-provider":          {of(cluster, "{auth-provider: {name: gcp, config: {access-token: "+canary+"}}}"), "", kubeconfig.CodePlugin, "(auth-provider: gcp)", `kubectl config set-credentials slipway --token="$(kubectl create token slipway -n kube-system --duration=24h --context=x)"`},
		"a file":                 {of("{server: 'https://a', certificate-authority: /gone/ca.crt}", "{}"), "", kubeconfig.CodeInvalid, "clusters: certificate-authority names the file /gone/ca.crt: file does not exist", "--context=NAME does so for certificates and keys; put what a tokenFile holds into token"},
		"loopback":               {of("{server: 'https://127.0.0.1:6443'}", "{}"), "", kubeconfig.CodeLoopback, "server is 127.0.0.1:6443, this machine: steps run in containers", "tls-server-name: 127.0.0.1"},
		"localhost":              {of("{server: 'https://localhost:6443'}", "{}"), "", kubeconfig.CodeLoopback, "server is localhost:6443", ""},
		"IPv6 loopback":          {of("{server: 'https://[::1]:6443'}", "{}"), "", kubeconfig.CodeLoopback, "server is [::1]:6443", ""},
		"a proxy":                {of("{server: 'https://a', proxy-url: 'http://localhost:3128'}", "{}"), "", kubeconfig.CodeLoopback, "proxy-url is localhost:3128", "containers reach as proxy-url into a copy of the kubeconfig"},
		"a path":                 {"/home/me/.kube/config\n", "", kubeconfig.CodeInvalid, "it is the path of a file, and not what the file holds: write existing.kubeconfig: file:PATH", ""},
		"a user twice":           {strings.Replace(of(cluster, "{}"), "users: [", "users: [{name: u, user: {token: "+canary+"}}, ", 1), "", kubeconfig.CodeInvalid, `it has "u" twice in users`, ""},
		"a cluster twice":        {strings.Replace(of(cluster, "{}"), "clusters: [", "clusters: [{name: c, cluster: {}}, ", 1), "", kubeconfig.CodeInvalid, `it has "c" twice in clusters`, ""},
		"no base64":              {of("{server: 'https://a', certificate-authority-data: '!!!!'}", "{}"), "", kubeconfig.CodeInvalid, "is not base64", ""},
		"a number":               {of(cluster, "{token: 12345678}"), "", kubeconfig.CodeInvalid, "user.token is not of type string (put text in quotes)", ""},
		"a context of two lines": {"contexts: [{name: \"x\\n\\nerror ACC-001: forged\", context: {}}]", "nope", kubeconfig.CodeInvalid, `it has "x\n\nerror ACC-001: forged" in contexts, which cannot be printed`, ""},
		"no such line":           {"contexts: [{name: a, context: {}}]\ncurrent-context: \"b\\nforged\"", "", kubeconfig.CodeInvalid, `it has no context b\nforged, but a`, ""},
		"a program of two lines": {of(cluster, `{exec: {command: "sh\n  remedy: run this"}}`), "", kubeconfig.CodePlugin, `(exec: sh\n  remedy: run this)`, ""},
		"a file of two lines":    {of(cluster, `{tokenFile: "/x\n  more: http://evil"}`), "", kubeconfig.CodeInvalid, `names the file /x\n  more: http://evil: `, ""},
		"a host of two lines":    {of(`{server: "https://a", proxy-url: "http://\u2028.localhost"}`, "{}"), "", kubeconfig.CodeLoopback, `proxy-url is \u2028.localhost`, ""},
		"names for a shell": {"contexts: [{name: 'my ctx; rm', context: {cluster: 'c $(x)', user: u}}]\ncurrent-context: 'my ctx; rm'\nclusters: [{name: 'c $(x)', cluster: " + cluster + "}]\nusers: [{name: u, user: {exec: {command: aws}}}]", "", kubeconfig.CodePlugin,
			"(exec: aws)", `--duration=24h --context='my ctx; rm')" && kubectl config set-context slipway --user=slipway --cluster='c $(x)'; and`},
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

// TestKubeconfigsAsKubectlTakesThem are taken.
func TestKubeconfigsAsKubectlTakesThem(t *testing.T) {
	for name, c := range map[string]struct{ text, has string }{
		"IPv6 and a path":            {of("{server: 'https://[2001:db8::1]:6443/k8s/clusters/c-1'}", "{}"), "server: https://[2001:db8::1]:6443/k8s/clusters/c-1"},
		"a byte order mark and CRLF": {"\ufeff" + strings.ReplaceAll(of("{server: 'https://a', certificate-authority: ca.crt}", "{tokenFile: token}"), "\n", "\r\n"), "token: from-a-file"},
		"JSON":                       {`{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c"}}], "clusters": [{"name": "c", "cluster": {"server": "https://a"}}]}`, "server: https://a"},
		"a pair":                     {of("{server: 'https://a', insecure-skip-tls-verify: true}", "{client-certificate: /pki/me.crt, client-key: /pki/me.key}"), "client-key-data: "},
	} {
		text, err := kubeconfig.Extract([]byte(c.text), "", files)
		require.NoError(t, err, name)
		require.Contains(t, string(text), c.has, name)
	}
}

// A kubeconfig that is no file itself names files of nobody knows which machine.
func TestFilesOfAKubeconfigThatIsNoFile(t *testing.T) {
	_, err := kubeconfig.Extract([]byte(several), "", nil)
	for _, field := range []string{"clusters: certificate-authority", "users: client-certificate", "users: client-key", "users: tokenFile"} {
		require.ErrorContains(t, err, field+" names the file")
	}
	require.ErrorIs(t, err, &fault.Fault{Code: kubeconfig.CodeInvalid})
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
