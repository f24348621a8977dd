package containers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

func TestAVolumeInUseIsLocked(t *testing.T) {
	says := "slipway-node: lock /var/lib/slipway-node/lock: another node uses this volume: a pid 7 since now; waited 30s\n"
	for what, c := range map[string]struct {
		err   error
		class fault.Class
		says  string
	}{
		"in use":   {&dagger.ExecError{ExitCode: 1, Stderr: says}, fault.Locked, "another node uses this volume: a pid 7"},
		"broken":   {&dagger.ExecError{ExitCode: 1, Stderr: "slipway-node: wipe: read-only file system\n"}, fault.Step, "exit status 1: slipway-node: wipe: read-only"},
		"too slow": {fmt.Errorf("sync: %w", context.DeadlineExceeded), fault.Timeout, "sync: context deadline exceeded"},
	} {
		t.Run(what, func(t *testing.T) {
			err := notWiped(c.err)
			require.ErrorIs(t, err, &fault.Fault{Code: "CTR-002"})
			require.Equal(t, c.class, fault.ClassOf(err))
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestAWipeThatLosesTheLock says so.
func TestAWipeThatLosesTheLock(t *testing.T) {
	var said strings.Builder
	WriteFault(&said, &fault.Fault{Code: "LOK-002", Class: fault.Locked, Op: "hold the lock", Err: errors.New("bob has it")})
	err := notWiped(&dagger.ExecError{ExitCode: 6, Stderr: said.String()})
	require.ErrorIs(t, err, &fault.Fault{Code: "LOK-002"})
	require.Equal(t, fault.Locked, fault.ClassOf(err))
}

// service is a service that answers to Start and Stop with err, or not before its
// context has ended.
type service struct{ err error }

func (s *service) answer(ctx context.Context) (*dagger.Service, error) {
	if s.err != nil {
		return nil, s.err
	}
	<-ctx.Done()
	return nil, fmt.Errorf("input: service start: %w", ctx.Err())
}

func (s *service) Start(ctx context.Context) (*dagger.Service, error) { return s.answer(ctx) }

func (s *service) Stop(ctx context.Context, _ ...dagger.ServiceStopOpts) (*dagger.Service, error) {
	return s.answer(ctx)
}

func TestANodeThatDoesNotStart(t *testing.T) {
	for what, c := range map[string]struct {
		err   error
		code  fault.Code
		class fault.Class
		says  string
	}{
		"in use":   {errors.New("exit code: 1: slipway-node: " + heldElsewhere + ": a pid 7"), "CTR-002", fault.Locked, "a pid 7"},
		"broken":   {errors.New("failed to start"), "CTR-002", fault.Step, "start the cluster's node: failed to start"},
		"too slow": {nil, "CTR-002", fault.Timeout, "waited 3m0s for port 6443 of the node of deployment demo to open; last seen: input: service start: "},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := &Cluster{name: "demo", life: &service{c.err}}
				err := cluster.Start(t.Context())
				require.ErrorIs(t, err, &fault.Fault{Code: c.code})
				require.Equal(t, c.class, fault.ClassOf(err))
				require.ErrorContains(t, err, c.says)
				require.NoError(t, cluster.Stop(t.Context()), "it does not run")
			})
		})
	}
}

func TestANodeThatDoesNotStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := (&Cluster{name: "demo", life: &service{}, running: true}).Stop(ctx)
		require.ErrorIs(t, err, &fault.Fault{Code: "CTR-002"})
		require.Equal(t, fault.Timeout, fault.ClassOf(err))
		require.ErrorContains(t, err, "stop the cluster's node: waited 1m0s for the node of deployment demo to end; last seen: input")

		err = (&Cluster{name: "demo", life: &service{errors.New("broken")}, running: true}).Stop(t.Context())
		require.ErrorIs(t, err, &fault.Fault{Code: "CTR-002"})
		require.Equal(t, fault.Step, fault.ClassOf(err))
	})
}

// A background cluster is joined, and left running, unless it is another one.
func TestAClusterThatIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("the engine was asked")
		cluster := &Cluster{name: "demo", id: "a", life: &service{broken}, running: true}
		cluster.Keep("a")
		require.NoError(t, cluster.Stop(t.Context()))
		require.True(t, cluster.Running())
		require.ErrorIs(t, cluster.End(t.Context()), broken)
		require.False(t, cluster.Running())
		require.ErrorIs(t, cluster.Start(t.Context()), broken)

		cluster.Keep("b")
		for _, err := range []error{cluster.Start(t.Context()), cluster.End(t.Context())} {
			require.ErrorIs(t, err, &fault.Fault{Code: "CTR-007"})
			require.Equal(t, fault.Preflight, fault.ClassOf(err))
			require.ErrorContains(t, err, "the running cluster of deployment demo was started from other images, with another account of the registry, or with other ports or another address to publish")
		}
	})
}

// TestAClusterOfAnotherAccount is another one: a node has its account as long as it runs.
func TestAClusterOfAnotherAccount(t *testing.T) {
	client := engine(t, func([]string) (any, string) { return nil, "nothing is asked" })
	of := func(mirror, digest string) string {
		images := &Images{Toolchain: client.Container(), Node: client.Container(), Mirror: mirror}
		if digest != "" {
			images.PullSecret, images.PullSecretDigest = client.SetSecret("account", "r1ght"), digest
		}
		return Open(client, "demo", images, Access{}).Cluster("", 8443).ID()
	}
	const mirror = "https://registry.example.com"
	require.Equal(t, of(mirror, "pbkdf2:1"), of(mirror, "pbkdf2:1"))
	require.NotEqual(t, of(mirror, "pbkdf2:1"), of(mirror, "pbkdf2:2"))
	require.NotEqual(t, of(mirror, "pbkdf2:1"), of(mirror, ""))
}

func TestAStepThatTheEngineLost(t *testing.T) {
	e := Exec{Args: []string{"slipway", "step", "infrastructure/terraform"}}
	err := lost(e, &dagger.ExecError{ExitCode: 137, Stderr: "Killed"})
	require.ErrorIs(t, err, &fault.Fault{Code: "CTR-001"})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.EqualError(t, err, "run [slipway step infrastructure/terraform]: exit status 137: Killed")

	for _, says := range []string{`failed to read secret file "/home/me/token": open /home/me/token: no such file or directory`, `secret env var not found: "TOK..."`} {
		f, ok := errors.AsType[*fault.Fault](lost(e, errors.New("resolve: "+says)))
		require.True(t, ok)
		require.Equal(t, codeLost, f.Code)
		require.NotContains(t, f.Fix, "memory")
		require.Contains(t, f.Fix, strings.SplitAfter(says, `"`)[1], "where it should be is named")
	}
}
