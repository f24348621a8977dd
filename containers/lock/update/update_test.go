package update

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/lock"
)

const (
	sum   = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	other = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
)

// redirect sends every request to one server, whatever host it names.
type redirect struct{ host string }

func (r redirect) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("X-Host", request.URL.Host)
	request.URL.Scheme, request.URL.Host = "http", r.host
	return http.DefaultTransport.RoundTrip(request)
}

// web serves pages by host and path.
func web(t *testing.T, pages map[string]string) *http.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.Header.Get("X-Host")+r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, page)
	}))
	t.Cleanup(server.Close)
	return &http.Client{Transport: redirect{server.Listener.Addr().String()}}
}

func kubectl(t *testing.T, l *lock.Lock) lock.Tool {
	t.Helper()
	at := slices.IndexFunc(l.Tools, func(tool lock.Tool) bool { return tool.Name == "kubectl" })
	require.GreaterOrEqual(t, at, 0)
	return l.Tools[at]
}

func kubectlOnly(t *testing.T) *lock.Lock {
	t.Helper()
	l, err := lock.Load()
	require.NoError(t, err)
	tool := kubectl(t, l)
	tool.Version, tool.Release = "1.35.4", nil
	return &lock.Lock{Version: lock.Format, Suite: "bookworm", Tools: []lock.Tool{tool}}
}

const (
	vendorPage = "dl.k8s.io/release/v1.35.4/bin/linux/arm64/kubectl.sha256"
	otherPage  = "raw.githubusercontent.com/kubernetes-sigs/kubespray/master/roles/kubespray_defaults/vars/main/checksums.yml"
)

func checksums(digest string) string {
	return "kubelet_checksums:\n  arm64:\n    1.35.4: sha256:" + other + "\nkubectl_checksums:\n  amd64:\n    1.35.4: sha256:" + other +
		"\n  arm64:\n    1.3504: sha256:" + other + "\n    1.35.4: sha256:" + digest + "\n"
}

func TestTwoSourcesThatAgreeAreEntered(t *testing.T) {
	sources := Public()
	sources.Client = web(t, map[string]string{vendorPage: sum, otherPage: checksums(sum)})
	found, err := sources.Resolve(t.Context(), kubectlOnly(t), "linux/arm64")
	require.NoError(t, err)
	require.Equal(t, []Finding{{
		Name: "kubectl", Platform: "linux/arm64", Digest: sum,
		Place:   "https://dl.k8s.io/release/v1.35.4/bin/linux/arm64/kubectl",
		Sources: []string{"dl.k8s.io", "kubernetes-sigs/kubespray"},
	}}, found)

	text, err := os.ReadFile("../lock.yaml")
	require.NoError(t, err)
	entered, err := Enter(text, found)
	require.NoError(t, err)
	l, err := lock.Parse(entered)
	require.NoError(t, err)
	tool := kubectl(t, l)
	require.Equal(t, sum, tool.Release["linux/arm64"].SHA256)

	// Nothing but the new lines differs.
	rest := strings.Split(string(entered), "\n")
	for _, line := range strings.Split(string(text), "\n") {
		for rest[0] != line {
			rest = rest[1:]
			require.NotEmpty(t, rest, "the line %q is gone", line)
		}
		rest = rest[1:]
	}

	again, err := sources.Resolve(t.Context(), l, "linux/arm64")
	require.NoError(t, err)
	for _, f := range again {
		require.NotEqual(t, "kubectl", f.Name, "what is entered is not asked for again")
	}

	// A second platform joins the first.
	found[0].Platform = "linux/amd64"
	if _, has := tool.Release["linux/amd64"]; !has {
		both, err := Enter(entered, found)
		require.NoError(t, err)
		l, err = lock.Parse(both)
		require.NoError(t, err)
		tool = kubectl(t, l)
		require.Len(t, tool.Release, 2)
	}
}

func TestSourcesThatDisagreeOrAreSilentAreNot(t *testing.T) {
	for problem, pages := range map[string]map[string]string{
		"the sources disagree; dl.k8s.io says " + sum: {vendorPage: sum, otherPage: checksums(other)},
		"1 of the two sources":                        {vendorPage: sum},
		"does not tell the sha256":                    {vendorPage: sum, otherPage: "kubectl_checksums:\n"},
		"0 of the two sources":                        {},
	} {
		t.Run(problem, func(t *testing.T) {
			sources := Public()
			sources.Client = web(t, pages)
			found, err := sources.Resolve(t.Context(), kubectlOnly(t), "linux/arm64")
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Contains(t, found[0].Problem, problem)

			text, err := os.ReadFile("../lock.yaml")
			require.NoError(t, err)
			entered, err := Enter(text, found)
			require.NoError(t, err)
			require.Equal(t, string(text), string(entered))
		})
	}
}

func TestImagesInTwoRegistries(t *testing.T) {
	image, err := random.Image(256, 1)
	require.NoError(t, err)
	digest, err := image.Digest()
	require.NoError(t, err)
	var refs []string
	for range 2 {
		server := httptest.NewServer(registry.New())
		t.Cleanup(server.Close)
		ref := server.Listener.Addr().String() + "/redis"
		tag, err := name.ParseReference(ref+":7.0", name.Insecure)
		require.NoError(t, err)
		require.NoError(t, remote.Write(tag, image))
		refs = append(refs, ref+":{version}")
	}
	l := &lock.Lock{Version: lock.Format, Suite: "bookworm", Images: []lock.Image{{Name: "redis", Version: "7.0", Debian: []string{"redis-server"}}}}
	sources := Sources{Images: map[string][]string{"redis": refs}, Insecure: true}
	found, err := sources.Resolve(t.Context(), l, "linux/amd64")
	require.NoError(t, err)
	require.Len(t, found, 1)
	require.Empty(t, found[0].Problem)
	require.Equal(t, digest.String(), found[0].Digest)
	require.Len(t, found[0].Sources, 2)

	text, err := os.ReadFile("../lock.yaml")
	require.NoError(t, err)
	entered, err := Enter(text, found)
	require.NoError(t, err)
	after, err := lock.Parse(entered)
	require.NoError(t, err)
	redis, _ := after.Image("redis")
	require.Equal(t, digest.String(), redis.Registry["linux/amd64"].Digest)

	refs[1] = "127.0.0.1:1/none:{version}"
	found, err = sources.Resolve(t.Context(), l, "linux/amd64")
	require.NoError(t, err)
	require.Contains(t, found[0].Problem, "1 of the two sources")
}
