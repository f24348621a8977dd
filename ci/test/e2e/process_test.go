package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
)

// process is one of this machine. Those in the engine's containers are among them.
type process struct {
	pid, parent int
	state       string // "R", "S", "T": see proc(5)
	args        []string
	root        string // its root directory, with what is mounted there
}

func processes(t *testing.T) (out []process) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range files {
		dir := filepath.Dir(file)
		text, _ := os.ReadFile(file) // it may have ended
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		p := process{args: strings.Split(string(text), "\x00"), root: filepath.Join(dir, "root")}
		p.pid, err = strconv.Atoi(filepath.Base(dir))
		require.NoError(t, err)
		// The second field is the command in brackets, which may hold anything.
		if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(fields) > 1 {
			p.state = fields[0]
			p.parent, err = strconv.Atoi(fields[1])
			require.NoError(t, err)
		}
		out = append(out, p)
	}
	return out
}

// descendants are processes, and all below them.
func descendants(t *testing.T, roots ...int) (out []process) {
	t.Helper()
	all := map[int]process{}
	for _, p := range processes(t) {
		all[p.pid] = p
	}
	for _, p := range all {
		for at := p.pid; at > 1; at = all[at].parent {
			if slices.Contains(roots, at) {
				out = append(out, p)
				break
			}
		}
	}
	return out
}

// step is the step that a process runs for a deployment, and the id of the run; empty for others.
func (p process) step(deployment string) (step, run string) {
	if len(p.args) < 3 || filepath.Base(p.args[0]) != "slipway" || p.args[1] != "step" {
		return "", ""
	}
	var request struct{ Deployment, Run string }
	text, _ := os.ReadFile(filepath.Join(p.root, contract.RequestFile)) // it may have ended
	if json.Unmarshal(text, &request) != nil || request.Deployment != deployment {
		return "", ""
	}
	return p.args[2], request.Run
}

// outage takes the cluster's API server away for half a minute: it ends it whenever it is
// there, and nobody who asks it gets an answer. The server is known by the certificate
// authority of the cluster.
func (k *kept) outage(t *testing.T) {
	t.Helper()
	ca, err := base64.StdEncoding.DecodeString(k.kubectl(t, "config", "view", "--raw", "-o", "jsonpath={.clusters[0].cluster.certificate-authority-data}"))
	require.NoError(t, err)
	require.NotEmpty(t, ca)
	require.Equal(t, "ok", k.kubectl(t, "get", "--raw", "/livez"))
	const authority = "--client-ca-file="
	asked := make(chan []string, 1)
	killed, end := 0, time.Now().Add(30*time.Second)
	for ; time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		for _, p := range processes(t) {
			if len(p.args) < 2 || p.args[1] != "kube-apiserver" {
				continue
			}
			at := slices.IndexFunc(p.args, func(arg string) bool { return strings.HasPrefix(arg, authority) })
			require.Positive(t, at, "%q", p.args)
			its, _ := os.ReadFile(filepath.Join(p.root, strings.TrimPrefix(p.args[at], authority)))
			if !bytes.Equal(bytes.TrimSpace(its), bytes.TrimSpace(ca)) || syscall.Kill(p.pid, syscall.SIGKILL) != nil {
				continue
			}
			if killed++; killed == 1 {
				go func() { asked <- k.asks(t.Context(), end) }()
			}
		}
	}
	require.Positive(t, killed)
	answers := <-asked
	require.Greater(t, len(answers), 3, "it was asked, and asked again")
	for _, answer := range answers {
		require.Empty(t, answer, "it answered")
	}
}

// asks asks the cluster's API server over and over, and returns the answer to each question that
// was over by then; empty for none.
func (k *kept) asks(ctx context.Context, end time.Time) (out []string) {
	for {
		answer, err := k.kubectlCommand(ctx, "get", "--raw", "/livez", "--request-timeout=2s").Output()
		if time.Now().After(end) || ctx.Err() != nil {
			return out
		}
		if err != nil {
			answer = nil
		}
		out = append(out, string(answer))
		time.Sleep(200 * time.Millisecond)
	}
}

// requireMounted asserts that a step that runs now has the release in its container, each
// file byte for byte and no other.
func (k *kept) requireMounted(t *testing.T, step, release string) {
	t.Helper()
	found := slices.DeleteFunc(processes(t), func(p process) bool {
		its, _ := p.step(k.Name)
		return its != step
	})
	require.Len(t, found, 1, "the processes of the step %s", step)
	want := contents(t, release)
	require.Contains(t, want, "platform.yaml")
	require.Equal(t, want, contents(t, filepath.Join(found[0].root, contract.PlatformDir)))
}

// contents are the files in a directory, and what is in them.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			out[name] = read(t, dir, name)
		}
		return err
	}))
	return out
}
