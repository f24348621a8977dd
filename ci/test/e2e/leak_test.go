package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"html"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// transcript is what commands printed.
type transcript struct {
	mu   sync.Mutex
	text strings.Builder
}

func (t *transcript) add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text.WriteString(text)
}

func (t *transcript) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.text.String()
}

// public are the keys of Secrets whose values are no secret.
var public = map[string]bool{"type": true, "username": true, "email": true, "url": true, "ca.crt": true, "tls.crt": true}

// listSecrets prints the Secrets that Slipway made in the cluster.
const listSecrets = "kubectl get secrets -A -l app.kubernetes.io/managed-by=slipway -o json"

// secrets are those of listSecrets' output, and the administrator's access to the
// cluster: by what they are, in the forms in which they could be somewhere.
func (k *kept) secrets(t *testing.T, text string) map[string][]string {
	t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Namespace, Name string }
			Data     map[string][]byte
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	all := map[string][]string{}
	for _, s := range list.Items {
		for key, value := range s.Data {
			if public[key] || len(value) < 12 {
				continue
			}
			what := s.Metadata.Namespace + "/" + s.Metadata.Name + " " + key
			all[what] = forms(string(value))
			require.True(t, holds(text, all[what]), "the list of Secrets holds %s: the search finds it", what)
		}
	}
	require.Contains(t, all, "gitea/gitea-admin password")
	require.Contains(t, all, "argocd/argocd-redis auth")
	kubeconfig := k.must(t, "kubeconfig").out
	key := regexp.MustCompile(`client-key-data: (\S+)`).FindStringSubmatch(kubeconfig)
	require.NotNil(t, key, "the kubeconfig has a key")
	pem, err := base64.StdEncoding.DecodeString(key[1])
	require.NoError(t, err)
	all["the administrator's key"] = append(forms(string(pem)), key[1])
	return all
}

// forms are a secret as it is, in base64 (once and twice), in hexadecimal numbers, and as in a
// URL and in HTML; of one of several lines (a key in PEM) each that has no ordinary words in it.
func forms(secret string) []string {
	if trimmed := strings.TrimSpace(secret); strings.Contains(trimmed, "\n") {
		all := []string{base64.StdEncoding.EncodeToString([]byte(secret))}
		for line := range strings.Lines(trimmed) {
			if line = strings.TrimSpace(line); len(line) >= 16 && !strings.HasPrefix(line, "-----") {
				all = append(all, forms(line)...)
			}
		}
		return all
	}
	return []string{
		secret, url.QueryEscape(secret), url.PathEscape(secret), html.EscapeString(secret), strings.ReplaceAll(secret, "&", `\&`),
		base64.RawStdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret)),
		base64.RawStdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(secret)))),
		hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))),
	}
}

func holds(text string, forms []string) bool {
	for _, form := range forms {
		if strings.Contains(text, form) {
			return true
		}
	}
	return false
}

// requireNoLeak asserts that no secret of the cluster is in what the commands on
// the deployment printed, in its records, and in more: texts by what they are.
func (k *kept) requireNoLeak(t *testing.T, more map[string]string) {
	t.Helper()
	places := k.records(t)
	places["what commands printed"] = k.printed.String()
	maps.Copy(places, more)
	for _, name := range []string{
		"the report's report.html", "the report's report.json", "the report's junit.xml", "the report's summary.md",
		"the report's steps/preorchestrator.gitea/log.txt", "the report's steps/preorchestrator.secrets/log.txt",
	} {
		require.NotEmpty(t, places[name], name)
	}
	names := slices.Collect(maps.Keys(places))
	for _, begins := range []string{"the state volume's state/", "the state volume's journal/preorchestrator.gitea/"} {
		require.True(t, slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(name, begins) && places[name] != "" }), begins)
	}
	requireNone(t, k.secrets(t, k.shell(t, listSecrets)), places)
}

// records are the files of the report of the last run and the package of it, and of the
// deployment's state volume, which has the records of all runs, by what they are.
func (k *kept) records(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	report := k.report(t)
	require.NoError(t, filepath.WalkDir(report, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(report, path)
		require.NoError(t, err)
		files["the report's "+filepath.ToSlash(name)] = read(t, report, name)
		return nil
	}))
	for name, text := range unpacked(t, k.save(t)) {
		files["the package's own "+name] = text
	}
	for name, text := range volume(t, k.shell(t, packVolume)) {
		files["the state volume's "+name] = text
	}
	return files
}

// requireNone asserts that no secret is in any place. Both are by what they are; a secret is in
// its forms.
func requireNone(t *testing.T, secrets map[string][]string, places map[string]string) {
	t.Helper()
	for what, forms := range secrets {
		for where, text := range places {
			if holds(text, forms) { // the secret is not told here either
				t.Errorf("%s: the secret %s is in it", where, what)
			}
		}
	}
}

// packVolume prints the deployment's state volume, without the secrets and
// Terraform's state, as an archive in base64.
const packVolume = "tar -cz -C /slipway/state --exclude=./secrets --exclude=./terraform . | base64 -w0"

// volume are the files of packVolume's output, by name.
func volume(t *testing.T, text string) map[string]string {
	t.Helper()
	packed, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	require.NoError(t, err)
	plain, err := gzip.NewReader(bytes.NewReader(packed))
	require.NoError(t, err)
	files := map[string]string{}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		if h.Typeflag == tar.TypeReg {
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			files[strings.TrimPrefix(h.Name, "./")] = string(text)
		}
	}
}

// TestTheSearchForSecretsFinds: one that is escaped or in a file of several lines.
func TestTheSearchForSecretsFinds(t *testing.T) {
	key := "-----BEGIN KEY-----\nMIIabc/defghij+klmnop\nMIIqrstuvwxyz0123456\n-----END KEY-----\n"
	for _, secret := range []string{"correct horse+battery", key} {
		for _, text := range []string{secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)), strings.ReplaceAll(secret, "\n", `\n`)} {
			require.True(t, holds("before "+text+" after", forms(secret)), text)
		}
		require.False(t, holds("-----BEGIN KEY-----", forms(secret)))
	}
}
