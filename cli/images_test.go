package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/cli/internal/secrets"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/containers/trust/sigstore/sigstoretest"
	"github.com/slipway-sh/slipway/fault"
)

// lockFile writes a lock as bundle push does.
func lockFile(t *testing.T, location string) string {
	t.Helper()
	b, err := bundle.Read(wholeBundle(t))
	require.NoError(t, err)
	of := lock.Pushed{Toolchain: "sha256:" + strings.Repeat("a", 64), Manifests: "sha256:" + strings.Repeat("b", 64), Index: pinned(t, b.Index)}
	text, err := (&lock.File{Version: lock.Format, Location: location, Bundles: map[string]lock.Pushed{b.Platform: of}}).Marshal()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "slipway.lock.json")
	require.NoError(t, os.WriteFile(path, text, 0o644))
	return path
}

// pinned is an index with the tools and manifests that the lock has.
func pinned(t *testing.T, x bundle.Index) bundle.Index {
	t.Helper()
	pins, err := lock.Load()
	require.NoError(t, err)
	for _, tool := range pins.Tools {
		x.Files = append(x.Files, bundle.File{
			Path: "bin/" + tool.Name, Name: tool.Name, Kind: bundle.Tool, Version: tool.Version, Origin: tool.Modules[0].Origin(), SHA256: strings.Repeat("a", 64),
		})
	}
	return x
}

// What is wrong with the place of the images is said before the engine is asked.
func TestWhereImagesComeFrom(t *testing.T) {
	t.Setenv("SLIPWAY_BUNDLE", "")
	t.Setenv("SLIPWAY_LOCK", "")
	broken := filepath.Join(t.TempDir(), "lock")
	require.NoError(t, os.WriteFile(broken, []byte(`{"version":1,"colour":"red"}`), 0o644))
	for what, c := range map[string]struct {
		args []string
		says []string
	}{
		"neither":            {nil, []string{"BUN-006", "--bundle DIR", "--lock FILE"}},
		"both":               {[]string{"--bundle", "x", "--lock", "y"}, []string{"either --lock or --bundle"}},
		"registry alone":     {[]string{"--bundle", "x", "--registry", "r.example.com"}, []string{"REG-010", "--registry goes with --lock"}},
		"no such lock":       {[]string{"--lock", "/does/not/exist"}, []string{"LCK-003", "bundle push"}},
		"a digest of none":   {[]string{"--lock", lockFile(t, "r.example.com"), "--bundle-digest", "none"}, []string{"--bundle-digest is about a bundle"}},
		"not a lock":         {[]string{"--lock", broken}, []string{"LCK-003", "colour"}},
		"no registry at all": {[]string{"--lock", lockFile(t, "")}, []string{"REG-010", "--registry host/path"}},
	} {
		t.Run(what, func(t *testing.T) {
			code, _, errs := slipway(append([]string{"status"}, c.args...)...)
			require.Equal(t, 2, code, errs)
			for _, s := range c.says {
				require.Contains(t, errs, s)
			}
		})
	}
}

// A bundle that is not there is the same failure for every command, before the
// engine is asked; ci/origin has the one of a call of the module.
func TestABundleThatIsNotThere(t *testing.T) {
	t.Setenv("SLIPWAY_LOCK", "")
	empty, damaged := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(damaged, bundle.IndexFile), []byte("{"), 0o600))
	for dir, code := range map[string]fault.Code{
		filepath.Join(empty, "none"): bundle.CodeAbsent, empty: bundle.CodeAbsent, damaged: bundle.CodeIndex,
	} {
		for _, args := range [][]string{{"install", "--bundle", dir}, {"status", "--bundle", dir}, {"bundle", "verify", dir}, {"lock", "verify", "--bundle", dir}} {
			exit, _, errs := slipway(args...)
			require.Equal(t, 3, exit, errs)
			require.Contains(t, errs, "error "+string(code)+": ", args)
			require.Contains(t, errs, "make bundle")
		}
	}
}

// A bundle that is not the one that its user wants is refused by every command before the
// engine is asked; none takes any.
func TestABundleThatIsNotWanted(t *testing.T) {
	withoutImages(t)
	dir, other := wholeBundle(t), "sha256:"+strings.Repeat("0", 64)
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	commands := map[string][]string{
		"install": {"install", "--bundle", dir}, "status": {"status", "--bundle", dir}, "lock verify": {"lock", "verify", "--bundle", dir},
		"clients": {"clients", "--out", t.TempDir(), "--bundle", dir}, "push": {"bundle", "push", dir, "127.0.0.1:1/x"},
		"validate": {"validate", "--bundle", dir}, "verify": {"bundle", "verify", dir}, "add": {"bundle", "add", dir, "web=" + webLayout(t)},
	}
	readOnly := []string{"validate", "verify", "add"}
	for what, args := range commands {
		exit, _, errs := slipway(append(args, "--bundle-digest", other)...)
		require.Equal(t, 3, exit, what)
		require.Contains(t, errs, "BUN-007", what)
		require.Contains(t, errs, "it is "+b.ReadDigest()+", and --bundle-digest says "+other, what)
		exit, _, errs = slipway(append(args, "--bundle-digest", "sha256:1")...)
		require.Equal(t, 2, exit, "%s: %s", what, errs)
		if slices.Contains(readOnly, what) { // runs nothing of it, and hands nothing on
			continue
		}
		exit, _, errs = slipway(args...)
		require.Equal(t, 3, exit, what)
		require.Contains(t, errs, "nothing says that this is the one you want", what)
	}
	exit, out, errs := slipway("bundle", "verify", dir)
	require.Zero(t, exit, errs)
	require.Contains(t, out, "bundle.json is "+b.ReadDigest()+", nothing says that this is the one you want")
	t.Setenv("SLIPWAY_BUNDLE_DIGEST", b.ReadDigest())
	exit, out, errs = slipway("bundle", "verify", dir)
	require.Zero(t, exit, errs)
	require.Contains(t, out, ", as SLIPWAY_BUNDLE_DIGEST says")

	// What this user adds is wanted.
	exit, out, errs = slipway("bundle", "add", dir, "web="+webLayout(t))
	require.Zero(t, exit, errs)
	after, err := bundle.Read(dir)
	require.NoError(t, err)
	require.NotEqual(t, b.ReadDigest(), after.ReadDigest())
	require.Contains(t, out, "its digest is "+after.ReadDigest())
	exit, out, errs = slipway("bundle", "verify", dir)
	require.Zero(t, exit, errs)
	require.Contains(t, out, ", as SLIPWAY_BUNDLE_DIGEST says, with what you have added to it")
	t.Setenv("SLIPWAY_CONFIG_DIR", t.TempDir())
	exit, _, errs = slipway("bundle", "verify", dir)
	require.Equal(t, 3, exit, "somebody else has added nothing: %s", errs)
	exit, _, errs = slipway("bundle", "push", dir, "127.0.0.1:1/x", "--bundle-digest", "none")
	require.Equal(t, 3, exit)
	require.Contains(t, errs, "BUN-005", "but it is not what the lock says")
	require.Contains(t, errs, "warning: the bundle "+after.ReadDigest()+" is unverified")
}

// A bundle that is signed is the one that who has the key wants, and no other.
func TestBundleSign(t *testing.T) {
	withoutImages(t)
	private, public := sigstoretest.Files(t)
	_, other := sigstoretest.Files(t)
	dir := smallBundle(t)
	for what, args := range map[string][]string{"no key": {dir}, "no directory": {"--key", private}, "the public key": {dir, "--key", public}, "no such key": {dir, "--key", "/none"}} {
		exit, _, errs := slipway(append([]string{"bundle", "sign"}, args...)...)
		require.Equal(t, 2, exit, "%s: %s", what, errs)
	}
	exit, _, errs := slipway("bundle", "sign", dir, "--key", private)
	require.Equal(t, 3, exit, errs)
	require.Contains(t, errs, "BUN-003: sign the bundle: it does not say what it was built from")
	provenanceOf(t, dir)
	exit, _, errs = slipway("bundle", "verify", dir, "--bundle-key", public)
	require.Equal(t, 3, exit, errs)
	require.Contains(t, errs, "has no signature that can be read")
	exit, _, errs = slipway("bundle", "sign", dir, "--key", private, "--bundle-digest", "sha256:"+strings.Repeat("0", 64))
	require.Equal(t, 3, exit, errs)
	require.Contains(t, errs, "BUN-007", "nobody signs another bundle")
	exit, out, errs := slipway("bundle", "sign", dir, "--key", private)
	require.Zero(t, exit, errs)
	require.Contains(t, out, "--bundle-key FILE")

	t.Setenv("SLIPWAY_BUNDLE_DIGEST", "sha256:"+strings.Repeat("0", 64))
	exit, out, errs = slipway("bundle", "verify", dir, "--bundle-key", public)
	require.Zero(t, exit, "the flag wins over the variable: %s", errs)
	require.Contains(t, out, "signed with the key ")
	t.Setenv("SLIPWAY_BUNDLE_KEY", public)
	exit, _, errs = slipway("bundle", "verify", dir)
	require.Zero(t, exit, "the key wins in the environment: %s", errs)
	exit, _, errs = slipway("bundle", "verify", dir, "--bundle-digest", "sha256:"+strings.Repeat("0", 64))
	require.Equal(t, 3, exit, errs)
	exit, _, errs = slipway("bundle", "verify", dir, "--bundle-key", other)
	require.Equal(t, 3, exit, errs)
	require.Contains(t, errs, "it is not signed with the key")
	exit, _, errs = slipway("bundle", "verify", dir, "--bundle-key", public, "--bundle-digest", "none")
	require.Equal(t, 2, exit)
	require.Contains(t, errs, "give either --bundle-digest, --bundle-key or --certificate-identity")

	exit, _, errs = slipway("bundle", "add", dir, "web="+webLayout(t))
	require.Zero(t, exit, errs)
	exit, out, errs = slipway("bundle", "verify", dir)
	require.Zero(t, exit, errs)
	require.Contains(t, out, ", with what you have added to it")
}

// With a key, a lock file is the one that was signed with it.
func TestASignedLock(t *testing.T) {
	withoutImages(t)
	private, public := sigstoretest.Files(t)
	_, other := sigstoretest.Files(t)
	lock := lockFile(t, "localhost:1/slipway")
	text, err := os.ReadFile(lock)
	require.NoError(t, err)
	dir := smallBundle(t)
	provenanceOf(t, dir)
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	signer, _, err := secrets.PrivateKey(private)
	require.NoError(t, err)
	signature, err := trust.SignFile(t.Context(), b, "slipway.lock.json", text, signer)
	require.NoError(t, err)
	for what, c := range map[string]struct {
		signature []byte
		args      []string
		code      int
		says      string
	}{
		"no signature":          {nil, []string{"--bundle-key", public}, 3, "LCK-007"},
		"no such key":           {nil, []string{"--bundle-key", private + ".none"}, 2, "PKG-004"},
		"something else":        {text, []string{"--bundle-key", public}, 3, "LCK-007"},
		"no key, no signature":  {nil, nil, 2, "REG-010"}, // what comes next
		"signed, another's key": {signature, []string{"--bundle-key", other}, 3, "it is not signed with the key"},
		"signed":                {signature, []string{"--bundle-key", public}, 2, "REG-010"},
	} {
		t.Run(what, func(t *testing.T) {
			file := lockFile(t, "localhost:1/slipway")
			if c.signature != nil {
				require.NoError(t, os.WriteFile(file+trust.Suffix, c.signature, 0o644))
			}
			code, _, errs := slipway(append([]string{"validate", "--lock", file}, c.args...)...)
			require.Equal(t, c.code, code, errs)
			require.Contains(t, errs, c.says)
		})
	}
}

// provenanceOf has a bundle say what it was built from.
func provenanceOf(t *testing.T, dir string) {
	t.Helper()
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	const text = "{}"
	require.NoError(t, os.WriteFile(b.Path(bundle.ProvenanceFile), []byte(text), 0o644))
	sum, err := bundle.Sum(t.Context(), b.Path(bundle.ProvenanceFile))
	require.NoError(t, err)
	b.Files = append(b.Files, bundle.File{Path: bundle.ProvenanceFile, Name: "provenance", Kind: bundle.Provenance, SHA256: sum, Size: int64(len(text))})
	index, err := b.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(b.Path(bundle.IndexFile), index, 0o644))
}

func TestBundlePushUsage(t *testing.T) {
	const to = "127.0.0.1:1/x"
	code, _, errs := slipway("bundle", "push", "dir")
	require.Equal(t, 2, code)
	require.Contains(t, errs, "slipway bundle push DIR HOST[:PORT]/PATH")
	code, _, errs = slipway("bundle", "push", t.TempDir(), to)
	require.Equal(t, 3, code)
	require.Contains(t, errs, "BUN-001")
	dir, out := t.TempDir(), filepath.Join(t.TempDir(), "lock.json")
	require.NoError(t, os.Mkdir(out+trust.Suffix, 0o755))
	for _, args := range [][]string{{"--out", dir}, {"--out", out, "--key", "key.pem"}} {
		code, _, errs = slipway(append([]string{"bundle", "push", dir, to}, args...)...)
		require.Equal(t, 2, code, errs)
		require.Contains(t, errs, "--out: ")
	}
	code, out, _ = slipway("bundle", "push", "--help")
	require.Zero(t, code)
	for _, text := range []string{"push DIR HOST/PATH", "--out string", "--plain-http", "(default \"slipway.lock.json\")"} {
		require.Contains(t, out, text)
	}
}
