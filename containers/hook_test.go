package containers

import (
	"testing"
	"time"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"
)

func TestAHookInTheToolchainIsEndedFromWithin(t *testing.T) {
	h := Hook{Args: []string{"sh", "-c", "sleep 9"}, Timeout: 1500 * time.Millisecond}
	require.Equal(t, []string{"timeout", "--kill-after=10s", "1.5s", "sh", "-c", "sleep 9"}, h.command())
	require.Equal(t, 21500*time.Millisecond, h.limit(), "the engine waits for that")

	for name, c := range map[string]struct {
		code int
		took time.Duration
		want bool
	}{
		"ended":                  {124, 2 * time.Second, true},
		"killed":                 {137, 12 * time.Second, true},
		"its own exit code":      {124, time.Second, false},
		"killed by the kernel":   {137, time.Second, false},
		"failed just in time":    {1, 2 * time.Second, false},
		"succeeded just in time": {0, 2 * time.Second, false},
	} {
		require.Equal(t, c.want, h.timedOut(c.code, c.took), name)
	}
}

func TestASecretOfAHookIsMaskedWithinItsContainer(t *testing.T) {
	secrets := map[string]*dagger.Secret{"TOKEN": nil, "PASSWORD": nil}
	own := Hook{Image: "backup@sha256:1", Args: []string{"/backup", "--all"}, Secrets: secrets, Kubeconfig: &dagger.Secret{}}
	require.Equal(t, []string{"/slipway/bin/slipway", "mask", "--secret", "PASSWORD", "--secret", "TOKEN", "--kubeconfig", "/slipway/kubeconfig", "--", "/backup", "--all"}, own.command())
	ours := Hook{Args: []string{"env"}, Secrets: secrets, Timeout: time.Second}
	require.Equal(t, []string{"/slipway/bin/slipway", "mask", "--secret", "PASSWORD", "--secret", "TOKEN", "--", "timeout", "--kill-after=10s", "1s", "env"}, ours.command())
}

func TestAHookInAnImageOfItsOwnIsEndedByTheEngine(t *testing.T) {
	h := Hook{Image: "backup@sha256:1", Args: []string{"/backup"}, Timeout: time.Minute}
	require.Equal(t, []string{"/backup"}, h.command(), "the image need not have timeout(1)")
	require.Equal(t, time.Minute, h.limit())
	require.False(t, h.timedOut(124, time.Hour), "that is the command's own")
}
