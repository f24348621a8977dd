package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// facts are what the deployment has in its cluster.
func (k *kept) facts(t *testing.T) facts {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-ceu", factsScript, "sh", "--show-managed-fields")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig, "PATH="+filepath.Join(k.Bundle, "bin")+":"+os.Getenv("PATH"))
	r := finish(t, cmd)
	require.Zero(t, r.code, r.err)
	f, err := factsOf([]byte(r.out), k.Name)
	require.NoError(t, err)
	return f
}

// made are the facts of an install of the reference platform by one of the tests, in which
// nothing tells which deployment that is, and where its images come from.
var made struct {
	sync.Mutex
	by    string
	facts facts
}

// requireAlike asserts that the reference platform is here as the other tests have
// installed it, as far as they have: those of TestBackgroundCluster, on a cluster of
// Slipway's, were not disturbed; those of TestLifecycle were interrupted and killed on the
// way, and so was that of TestExistingCluster, on another cluster. images is what their
// references begin with.
func (k *kept) requireAlike(t *testing.T, images string) {
	t.Helper()
	plain := func(text string) string {
		text = strings.ReplaceAll(text, withoutChance(images), "<images>/")
		text = strings.ReplaceAll(text, k.Name, "<deployment>")
		return digestsOfImages.ReplaceAllString(text, "$1<digest>")
	}
	own := facts{}
	for id, text := range k.facts(t) {
		if !notThePlatforms.MatchString(id) {
			own[plain(id)] = plain(text)
		}
	}
	require.Greater(t, len(own), 60)
	made.Lock()
	defer made.Unlock()
	if made.facts == nil {
		made.by, made.facts = t.Name(), own
		return
	}
	require.NoError(t, made.facts.compare(own), "what %s has made, and %s", made.by, t.Name())
	t.Logf("the same %d objects as those of %s", len(own), made.by)
}

// digestsOfImages are digests that the references of images are part of, at the end of an object's
// name.
var digestsOfImages = regexp.MustCompile(`\b(database-rows-)[0-9a-f]{8}\b`)

// notThePlatforms are what Slipway adds to a cluster of its own.
var notThePlatforms = regexp.MustCompile(` (kube-system|local-path-storage)/| Namespace local-path-storage$|StorageClass|local-path`)
