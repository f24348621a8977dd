package cli

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/packing"
	"github.com/slipway-sh/slipway/config/platform"
	reference "github.com/slipway-sh/slipway/examples/platform"
	"github.com/slipway-sh/slipway/pipeline/runpackage"
)

// packageOf writes a package of a run that installed a release, changed in name only if
// other, with these secrets, and signed; it returns the package and the public key.
func packageOf(t *testing.T, other bool, secrets ...string) (file, key string) {
	t.Helper()
	return packageWith(t, other, "platform: {release: 1.0.0, secrets: {"+strings.Join(secrets, ", ")+"}}\n")
}

// packageWith is packageOf with this in the configuration.
func packageWith(t *testing.T, other bool, text string) (file, key string) {
	t.Helper()
	dir := t.TempDir()
	files, err := reference.Release("1.0.0")
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(filepath.Join(dir, "release"), files))
	if other {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "release", "note.txt"), []byte("another"), 0o600))
	}
	release := os.DirFS(filepath.Join(dir, "release"))
	digest, err := platform.Digest(release)
	require.NoError(t, err)
	config := []byte("apiVersion: slipway.sh/v1\nglobal: {name: shop, scale: 50, domain: shop.test}\n" + text)
	content := runpackage.Files{runpackage.ConfigFile: {Data: config}}
	require.NoError(t, content.Add(runpackage.ReleaseDir, release))
	public, private, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	var b bytes.Buffer
	info := runpackage.Info{Run: "20260102-030405-abcdef", Workflow: "install", Deployment: "shop", Outcome: "failed", Code: "ORC-005", Step: "orchestrator/sync",
		Platform: runpackage.Platform{Name: "reference", Version: "1.0.0", Digest: digest}}
	require.NoError(t, runpackage.Write(&b, info, content, packing.Signer(private)))
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	file, key = filepath.Join(dir, "run.tar.zst"), filepath.Join(dir, "key.pub.pem")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
	return file, key
}

func TestSaveVerify(t *testing.T) {
	file, key := packageOf(t, false)
	_, otherKey := packageOf(t, false)
	code, out, errs := slipway("save", "--verify", file)
	require.Zero(t, code, errs)
	require.Contains(t, out, "is whole: ")
	require.Contains(t, out, "run 20260102-030405-abcdef, install of shop: failed ORC-005 orchestrator/sync\n")
	require.Contains(t, out, "it has a signature; --package-key FILE verifies whose\n")
	text, err := os.ReadFile(key)
	require.NoError(t, err)
	t.Setenv("PACKAGE_KEY", string(text))
	for _, place := range []string{key, "env:PACKAGE_KEY", "file:" + key} {
		code, out, errs = slipway("save", "--verify", file, "--package-key", place)
		require.Zero(t, code, errs)
		require.Contains(t, out, "\nsigned with the key ")
	}
	bad := filepath.Join(t.TempDir(), "bad.tar.zst")
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	if runtime.GOOS != "windows" { // where no file has such a name
		lines := filepath.Join(t.TempDir(), "a is whole\nsigned with the key 4b01c0de\nx.tar.zst")
		code, _, errs = slipway("save", "--verify", lines)
		require.Equal(t, 2, code)
		require.NotContains(t, errs, "\nsigned", "there is none")
		require.NoError(t, os.WriteFile(lines, data, 0o600))
		code, out, errs = slipway("save", "--verify", lines)
		require.Zero(t, code, errs)
		require.NotContains(t, out, "\nsigned")
		require.NoError(t, os.WriteFile(lines, data[1:], 0o600))
		_, _, errs = slipway("save", "--verify", lines)
		require.NotContains(t, errs, "\nsigned")
	}
	data[len(data)/2] ^= 1
	require.NoError(t, os.WriteFile(bad, data, 0o600))
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--verify", bad}, 3, "error PKG-002: verify " + bad},
		{[]string{"--verify", file, "--package-key", otherKey}, 3, "error PKG-003: verify " + file},
		{[]string{"--verify", key}, 2, "error PKG-001: verify " + key},
		{[]string{"--verify", file, "--package-key", "env:NOT_THERE"}, 2, "error PKG-004: read the key env:NOT_THERE"},
		{[]string{"--verify", file, "--package-key", file}, 2, "error PKG-004: read the key to verify with: it is not PEM"},
		{[]string{"--key", key}, 2, "error PKG-004: read the key to sign with: it is of the kind \"PUBLIC KEY\""},
		{[]string{"--key", file + "x"}, 2, "error PKG-004: read the key " + file + "x"},
		{[]string{"--verify", file, "--run", "x"}, 2, "--run, --out and --key make a package"},
		{[]string{"--verify", file, "--key", key}, 2, "with --package-key FILE"},
		{[]string{"--package-key", key}, 2, "--package-key goes with --verify FILE"},
		{[]string{"--out", "x.zip"}, 2, "give a file that ends with .tar.zst"},
	} {
		code, _, errs := slipway(append([]string{"save"}, c.args...)...)
		require.Equal(t, c.code, code, errs)
		require.Contains(t, errs, c.says)
	}
}

func TestInstallFromAPackage(t *testing.T) {
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	file, key := packageOf(t, true)
	_, otherKey := packageOf(t, false)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--package", file, "--config", "x.yaml"}, 2, "give either --config or a package"},
		{[]string{"--package", file, "--platform", "x"}, 2, "give either --platform or a package"},
		{[]string{"--package-key", key}, 2, "--package-key goes with a package"},
		{[]string{"--package", file, "--package-key", otherKey}, 3, "error PKG-003"},
		{[]string{"--package", key + ".tar.zst"}, 2, "error PKG-001"},
		{[]string{"--package", file, "--package-key", key, "--bundle", "/none", "--name", "again"}, 3, "of deployment shop, reference 1.0.0"},
	} {
		code, _, errs := slipway(append([]string{"install"}, c.args...)...)
		require.Equal(t, c.code, code, errs)
		require.Contains(t, errs, c.says)
	}
	short := filepath.Join(t.TempDir(), "t.zst")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(short, text, 0o600))
	_, _, errs := slipway("install", "--package", short, "--bundle", "/none", "--name", "again")
	require.Contains(t, errs, "error BUN-001", "a package is known by what is in it")
	_, _, errs = slipway("install", "--package", file, "--package-key", otherKey, "--name", "again")
	require.Contains(t, errs, "whoever packs deployment shop signs it")
	require.NotContains(t, errs, "--name again", "the package is of another deployment")
	_, _, errs = slipway("install", "--package", file, "--bundle", "/none", "--name", "again")
	require.Contains(t, errs, "error BUN-001", "the package was opened, and nothing started")
	ran := filepath.Join(t.TempDir(), "ran")
	runs, itsKey := packageOf(t, false, `adminPassword: "cmd:touch `+ran+`"`)
	for _, command := range []string{"install", "reproduce"} {
		code, _, errs := slipway(command, "--package", runs, "--bundle", "/none", "--name", "again")
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, "error PKG-012")
		require.Contains(t, errs, "it would run on this machine: cmd:touch "+ran+" (platform.secrets.adminPassword)")
	}
	_, _, errs = slipway("install", "--package", runs, "--package-key", itsKey, "--bundle", "/none", "--name", "again")
	require.Contains(t, errs, "its platform.secrets.adminPassword is taken from cmd:touch "+ran)
	require.Contains(t, errs, "error BUN-001", "somebody vouched for it")
	require.NoFileExists(t, ran)
	code, _, errs := slipway("install", "--package", file, "--approve", "sha256:"+strings.Repeat("ab", 32), "--bundle", "/none", "--name", "again")
	require.Equal(t, 3, code, "a package is no step: %s", errs)
}

// TestWhatAPackageBringsRunsNothing, wherever its configuration is used, unless somebody vouched
// for it.
func TestWhatAPackageBringsRunsNothing(t *testing.T) {
	kept(t)
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	ran := filepath.Join(t.TempDir(), "ran")
	access, _ := packageWith(t, false, "provider: existing\nexisting: {kubeconfig: 'cmd:touch "+ran+"'}\n")
	code, _, errs := slipway("install", "--package", access, "--bundle", "/none", "--name", "again")
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "error PKG-012")
	require.Contains(t, errs, "(existing.kubeconfig)", "a secret of a provider's section")
	_, _, errs = slipway("reproduce", "--package", access, "--bundle", "/none", "--name", "again")
	require.NotContains(t, errs, "PKG-012", "which has a cluster of its own")

	hooks := "hooks:\n"
	for _, at := range []string{"before", "after"} {
		hooks += "- {name: " + at + ", " + at + ": workflow, workflows: [configure], run: [touch, " + ran + "], secrets: {T: 'cmd:touch " + ran + "'}, always: " + strconv.FormatBool(at == "after") + "}\n"
	}
	hooked, _ := packageWith(t, false, hooks)
	plain := filepath.Join(t.TempDir(), "plain.yaml")
	require.NoError(t, os.WriteFile(plain, []byte("apiVersion: slipway.sh/v1\nglobal: {name: shop, scale: 50}\n"+hooks), 0o600))
	recorded := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(recorded, "config.yaml"), []byte("apiVersion: slipway.sh/v1\nglobal: {name: shop, scale: 50}\n"+hooks), 0o600))
	for _, file := range []string{hooked, plain, recorded} {
		for _, output := range []string{"-", filepath.Join(t.TempDir(), "new.yaml"), ""} {
			args := []string{"configure", "--bundle", "/none", "--force", "--file", file}
			if output != "" {
				args = append(args, "--out", output)
			}
			code, out, errs := slipway(args...)
			require.Zero(t, code, "a hook needs a bundle: %s", errs)
			require.Contains(t, errs, "the hook after did not run: it is from "+file)
			require.Contains(t, errs, "warning: hooks.after.secrets.T is taken from cmd:touch "+ran)
			require.Equal(t, output == "-", strings.Contains(out, "cmd:touch"))
		}
	}
	code, _, errs = slipway("configure", "--bundle", "/none", "--force", "--file", hooked, "--out", hooked)
	require.Zero(t, code, "it is no file of the user's: %s", errs)

	code, _, errs = slipway("configure", "--bundle", "/none", "--file", plain, "--out", plain)
	require.Equal(t, 3, code, "the user's own file: %s", errs)
	require.Contains(t, errs, "error BUN-001")
	code, out, errs := slipway("configure", "--bundle", "/none", "--answers", plain, "--out", "-")
	require.Zero(t, code, errs)
	require.Contains(t, out, "cmd:touch")
	require.NoFileExists(t, ran)
}

// TestWhatAPackageBringsSendsNothing of this machine: no variable of its environment, and no
// credentials to a bucket that the user has not named.
func TestWhatAPackageBringsSendsNothing(t *testing.T) {
	kept(t)
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	t.Setenv("MINE", "canary")
	asked := make(chan string, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	t.Cleanup(server.Close)
	bucket := "s3://bucket?region=us-east-1&endpoint=" + server.URL + "/${MINE}&use_path_style=true"
	file, key := packageWith(t, false, "state: {url: '"+bucket+"', credentials: {AWS_ACCESS_KEY_ID: 'env:MINE', AWS_SECRET_ACCESS_KEY: 'env:MINE'}}\n")
	code, _, errs := slipway("install", "--package", file, "--bundle", "/none", "--name", "again")
	require.Equal(t, 2, code, errs)
	require.Contains(t, errs, "error PKG-012")
	require.Contains(t, errs, "credentials of this machine would go to "+bucket)
	require.Contains(t, errs, "name it: --state '"+bucket+"'")
	require.NotContains(t, errs, "canary")
	require.Empty(t, asked)
	for _, agreed := range [][]string{{"--package-key", key}, {"--state", strings.ReplaceAll(bucket, "${MINE}", "mine")}} {
		_, _, errs = slipway(append([]string{"install", "--package", file, "--bundle", "/none", "--name", "again"}, agreed...)...)
		require.NotContains(t, errs, "PKG-012", agreed)
		require.NotContains(t, errs, "canary", agreed)
	}

	file, _ = packageWith(t, false, "git: {url: 'https://${MINE}.test/a.git'}\nproxy: {https: 'http://${MINE}.test'}\n")
	_, _, errs = slipway("install", "--package", file, "--bundle", "/none", "--name", "again")
	require.Contains(t, errs, "git.url: got something that is not a URL", "for it has no variable")
	require.NotContains(t, errs, "canary")
}

func TestConfigureBeginsWithAPackage(t *testing.T) {
	dir := kept(t)
	same, key := packageOf(t, false)
	out := filepath.Join(t.TempDir(), "slipway.yaml")
	code, _, errs := slipway("configure", "--file", same, "--package-key", key, "--set", "global.name=again", "--out", out)
	require.Zero(t, code, errs)
	text, err := os.ReadFile(out)
	require.NoError(t, err)
	require.Contains(t, string(text), "name: again")
	require.Contains(t, string(text), "domain: shop.test")
	require.Contains(t, string(text), "release: 1.0.0", "which is the same release here")

	other, _ := packageOf(t, true)
	code, _, errs = slipway("configure", "--file", other)
	require.Zero(t, code, errs)
	text, err = os.ReadFile(filepath.Join(dir, "deployments", "shop.yaml"))
	require.NoError(t, err)
	_, release, found := strings.Cut(string(text), "release: ")
	require.True(t, found)
	release, _, _ = strings.Cut(release, "\n")
	require.FileExists(t, filepath.Join(release, "note.txt"))
	require.Contains(t, errs, "the platform release of the package is in "+release)
	code, _, errs = slipway("validate", "--name", "shop")
	require.Zero(t, code, errs)

	code, _, errs = slipway("configure", "--file", key, "--package-key", key)
	require.Equal(t, 2, code)
	require.Contains(t, errs, "--package-key goes with --file and a package")
	code, _, errs = slipway("configure", "--file", key+".tar.zst")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "PKG-001")
}

// TestNoDirectoryThatOnlyAPackageNamesIsOpened: it may be on a server, as of an automount.
func TestNoDirectoryThatOnlyAPackageNamesIsOpened(t *testing.T) {
	kept(t)
	dir := filepath.Join(t.TempDir(), "theirs")
	require.NoError(t, os.CopyFS(dir, os.DirFS(filepath.Join("..", "examples", "platform", "1.0.0"))))
	config := []byte("apiVersion: slipway.sh/v1\nglobal: {name: shop, scale: 50}\nplatform: {release: " + dir + "}\n")
	var b bytes.Buffer
	require.NoError(t, runpackage.Write(&b, runpackage.Info{Run: "20260102-030405-abcdef", Workflow: "destroy"}, runpackage.Files{runpackage.ConfigFile: {Data: config}}, nil))
	recorded := filepath.Join(t.TempDir(), "run")
	require.NoError(t, os.Mkdir(recorded, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(recorded, "config.yaml"), config, 0o600))
	file := filepath.Join(recorded, "run.tar.zst")
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	for _, from := range []string{file, recorded} {
		args := []string{"configure", "--out", "-", "--file", from}
		code, _, errs := slipway(args...)
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, from+" names it and does not hold it")
		for _, more := range [][]string{{"--platform", dir}, {"--set", "platform.release=1.0.0"}} {
			code, _, errs = slipway(append(args, more...)...)
			require.Zero(t, code, errs)
		}
		require.NoError(t, os.Rename(dir, dir+"-away"))
		_, _, same := slipway(args...)
		require.NoError(t, os.Rename(dir+"-away", dir))
		_, _, errs = slipway(args...)
		require.Equal(t, errs, same, "whether it is there is not looked for")
	}
	require.NoError(t, os.CopyFS(filepath.Join(filepath.Dir(recorded), "theirs", "1"), os.DirFS(dir)))
	require.NoError(t, os.WriteFile(filepath.Join(recorded, "config.yaml"), bytes.ReplaceAll(config, []byte(dir), []byte("theirs/1")), 0o600))
	code, _, errs := slipway("configure", "--out", "-", "--file", recorded)
	require.Zero(t, code, errs)
}

func TestReproduceRefuses(t *testing.T) {
	t.Setenv("SLIPWAY_CACHE", t.TempDir())
	file, _ := packageOf(t, false)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{nil, 2, "give the package: --package FILE.tar.zst"},
		{[]string{"--package", file, "sh"}, 2, `unexpected argument "sh"; a command goes after --`},
		{[]string{"--package", file + "x"}, 2, "error PKG-001"},
		{[]string{"--package", file}, 2, "error PKG-009: read the run in the package"},
	} {
		code, _, errs := slipway(append([]string{"reproduce"}, c.args...)...)
		require.Equal(t, c.code, code, errs)
		require.Contains(t, errs, c.says)
	}
}
