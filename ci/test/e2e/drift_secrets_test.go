package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownSecret is a Secret that Slipway has made.
type ownSecret struct {
	Metadata struct {
		Name, Namespace, UID string
		Labels               map[string]string
	}
	Data map[string][]byte
}

// ownSecrets are those, by namespace and name, but for what Argo CD reads: that follows others.
func ownSecrets(t *testing.T, kubectl onCluster) map[string]ownSecret {
	t.Helper()
	var list struct{ Items []ownSecret }
	require.NoError(t, json.Unmarshal([]byte(kubectl(t, "get", "secrets", "-A", "-l", "app.kubernetes.io/managed-by=slipway", "-o", "json")), &list))
	out := map[string]ownSecret{}
	for _, s := range list.Items {
		if s.Metadata.Labels["argocd.argoproj.io/secret-type"] == "" {
			out[s.Metadata.Namespace+"/"+s.Metadata.Name] = s
		}
	}
	return out
}

// spoil puts text of somebody's in the place of a certificate that Slipway has issued, and of
// its authority's.
func spoil(t *testing.T, kubectl onCluster, certificate string) {
	t.Helper()
	text := base64.StdEncoding.EncodeToString([]byte("by hand"))
	patched("Secret "+certificate, fmt.Sprintf(`{"data":{"tls.crt":%[1]q,"ca.crt":%[1]q}}`, text)).do(t, kubectl)
}

// requireIssued asserts that what the Secret of a certificate has now is from the authority of
// before, for the same names, and anew.
func requireIssued(t *testing.T, was, now map[string][]byte) {
	t.Helper()
	pair := func(data map[string][]byte) tls.Certificate {
		t.Helper()
		out, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
		require.NoError(t, err)
		return out
	}
	require.Equal(t, string(was["ca.crt"]), string(now["ca.crt"]))
	before, after, roots := pair(was), pair(now), x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(was["ca.crt"]))
	_, err := after.Leaf.Verify(x509.VerifyOptions{Roots: roots})
	require.NoError(t, err)
	require.Equal(t, before.Leaf.DNSNames, after.Leaf.DNSNames)
	require.NotEqual(t, before.Leaf.SerialNumber, after.Leaf.SerialNumber)
}

// editSecrets deletes a Secret and a copy of another, takes a key out of a third, changes one
// of a fourth, and spoils a certificate. What it returns asserts that they were made again, the
// copy with what it is a copy of, that what was changed has stayed, and all others too.
func editSecrets(t *testing.T, random *rand.Rand, kubectl onCluster) func(t *testing.T) {
	t.Helper()
	keys := map[string]string{
		"gitea/gitea-admin": "password", "gitea/gitea-slipway": "password", "gitea/gitea-reader": "password",
		"argocd/argocd-redis": "auth", "gitea/gitea-keys": "internal-token",
	}
	names := slices.Sorted(maps.Keys(keys))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	deleted, lacking, changed := names[0], names[1], names[2]
	if changed == "gitea/gitea-keys" { // whose values have a form
		changed = names[3]
	}
	const copied, spoilt, value = "guestbook/database-reader", "gitea/gitea-tls", "ByHand0123456789"
	edit := func(name, verb string, args ...string) {
		t.Helper()
		byHand{"Secret " + name, verb, args}.do(t, kubectl)
	}
	before := ownSecrets(t, kubectl)
	edit(deleted, "delete")
	edit(copied, "delete")
	edit(lacking, "patch", "-p", fmt.Sprintf(`{"data":{%q:null}}`, keys[lacking]))
	edit(changed, "patch", "-p", fmt.Sprintf(`{"data":{%q:%q}}`, keys[changed], base64.StdEncoding.EncodeToString([]byte(value))))
	spoil(t, kubectl, spoilt)
	return func(t *testing.T) {
		t.Helper()
		after := ownSecrets(t, kubectl)
		require.Equal(t, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
		require.Contains(t, before, spoilt)
		for name, was := range before {
			now := after[name]
			if name == deleted || name == copied {
				require.NotEqual(t, was.Metadata.UID, now.Metadata.UID, name)
			} else {
				require.Equal(t, was.Metadata.UID, now.Metadata.UID, name)
			}
			if name == spoilt {
				requireIssued(t, was.Data, now.Data)
				continue
			}
			require.Equal(t, slices.Sorted(maps.Keys(was.Data)), slices.Sorted(maps.Keys(now.Data)), name)
			for key, text := range was.Data {
				same := string(text) == string(now.Data[key]) // which is told to nobody
				switch {
				case name == changed && key == keys[name]:
					require.Equal(t, value, string(now.Data[key]), "%s %s", name, key)
				case name == deleted && public[key], name != deleted && (name != lacking || key != keys[name]):
					require.True(t, same, "%s %s is another", name, key)
				default:
					require.False(t, same, "%s %s is the one that is gone", name, key)
					require.NotEmpty(t, now.Data[key], "%s %s", name, key)
				}
			}
		}
	}
}
