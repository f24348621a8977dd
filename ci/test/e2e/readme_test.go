package e2e

import (
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/ci/test/slipway"
)

// readme is a command in the table of README.md's first screen as it stands there, in a shell
// with what `make env` prints, and with the arguments of a test after it.
func (d deployment) readme(t *testing.T, dir, command string, args ...string) *exec.Cmd {
	t.Helper()
	screen, _, _ := strings.Cut(read(t, d.Root, "README.md"), "\n## ")
	found := regexp.MustCompile("\\| `(" + regexp.QuoteMeta(command) + "(?: [^`]*)?)` \\|").FindStringSubmatch(screen)
	require.NotNil(t, found, "%s in %s", command, screen)
	d.Name = ""
	of := d.CLI(t.Context(), "") // whose environment it has
	script := `eval "$(make -s -C "$0" env)"; exec ` + found[1] + ` "$@"`
	cmd := exec.CommandContext(t.Context(), "bash", append([]string{"-euc", script, d.Root}, args...)...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, of.Env, of.WaitDelay
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	return cmd
}

// TestTheShellOfTheReadme: with what `make env` prints, each program is there and runs.
func TestTheShellOfTheReadme(t *testing.T) {
	d := open(t, "")
	script := `eval "$(make -s env)"; for p in slipway kubectl helm terraform; do [ "$(command -v $p)" = "$SLIPWAY_BUNDLE/bin/$p" ] || exit 1; done
dagger version && slipway version && kubectl version --client && helm version --short && terraform version
[ -f "$SLIPWAY_BUNDLE/bundle.json" ] && slipway bundle verify "$SLIPWAY_BUNDLE" | grep -q ', as SLIPWAY_BUNDLE_DIGEST says'`
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
	cmd.Dir = d.Root
	r := finish(t, cmd)
	require.Zero(t, r.code, slipway.Tail(r.out+r.err))
}
