package conductor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"dagger.io/dagger"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/containers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages"
	"github.com/slipway-sh/slipway/stages/contract"
)

// engine is a Dagger engine that runs nothing: it keeps what it is asked, gives
// every object an id, and answers the rest from a table.
type engine struct {
	answers  map[string]any           // by what the question holds
	problems map[string]string        // that the engine answers with, by what the question holds
	exit     int                      // code of every command
	fails    string                   // what the one command holds that has that code; empty: all
	exports  func(path string)        // is called with each file that it has written; may be nil
	lasts    map[string]chan struct{} // until when commands run that hold this

	mu    sync.Mutex
	asked []string
	taken []string // the text of files of this machine
}

// onHost is a file of this machine that the engine is to have, exported one that this
// machine is to have.
var (
	onHost   = regexp.MustCompile(`host\{directory\(path:"([^"]+)"\)\{file\(path:"([^"]+)"\)\{id`)
	exported = regexp.MustCompile(`\{export\([^()]*path:"([^"]+)"`)
)

// conducted is a conductor on an engine that has these answers.
func conducted(t *testing.T, answers map[string]any) (*Conductor, *engine) {
	t.Helper()
	all := map[string]any{`"slipway","state","open"`: `{}`, "{plaintext}": "what a secret holds"}
	maps.Copy(all, answers)
	e := &engine{answers: all, lasts: map[string]chan struct{}{watching: nil}}
	client, err := dagger.Connect(t.Context(), dagger.WithConn(e))
	require.NoError(t, err)
	images := &containers.Images{Toolchain: client.Container(), Node: client.Container()}
	c, err := New(Options{Client: client, Config: config.Default(), Provider: local.Provider{}, Images: images})
	require.NoError(t, err)
	return c, e
}

func (e *engine) Host() string { return "engine.invalid" }
func (e *engine) Close() error { return nil }

// Do answers a query, whose selection is a chain: a{b{c}}.
func (e *engine) Do(req *http.Request) (*http.Response, error) {
	var body struct{ Query string }
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return nil, err
	}
	names := regexp.MustCompile(`"(?:[^"\\]|\\.)*"`).ReplaceAllString(body.Query, "")
	names = regexp.MustCompile(`\([^()]*\)`).ReplaceAllString(names, "")
	path := regexp.MustCompile(`\w+`).FindAllString(names, -1)[1:] // after "query"
	data, err := e.answer(req.Context(), body.Query, path[len(path)-1])
	if err != nil {
		return nil, err
	}
	for i := len(path) - 1; i >= 0; i-- {
		data = map[string]any{path[i]: data}
	}
	text, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(text))}, nil
}

// watching is what the command holds that watches the lock, until its end or the run's.
const watching = `"slipway","state","watch"`

func (e *engine) answer(ctx context.Context, query, leaf string) (any, error) {
	for part, end := range e.lasts {
		if leaf == "exitCode" && strings.Contains(query, part) {
			select {
			case <-end:
			case <-ctx.Done():
			}
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, query)
	if leaf == "exitCode" {
		if !strings.Contains(query, e.fails) {
			return 0, ctx.Err()
		}
		return e.exit, ctx.Err()
	}
	if from := onHost.FindStringSubmatch(query); from != nil {
		text, err := os.ReadFile(filepath.Join(from[1], from[2]))
		if err != nil {
			return nil, err
		}
		e.taken = append(e.taken, string(text))
	}
	for part, problem := range e.problems {
		if strings.Contains(query, part) {
			return nil, errors.New(problem)
		}
	}
	if part := innermost(e.answers, query); part != "" {
		if at := exported.FindStringSubmatch(query); at != nil {
			if info, err := os.Stat(at[1]); err != nil || !info.IsDir() { // a directory is filled by exports
				if err := os.WriteFile(at[1], []byte(fmt.Sprint(e.answers[part])), 0o600); err != nil {
					return nil, err
				}
			}
			if e.exports != nil {
				e.exports(at[1])
			}
		}
		return e.answers[part], ctx.Err()
	}
	switch leaf {
	case "id", "sync", "start", "stop":
		return fmt.Sprintf("id-%d", len(e.asked)), ctx.Err()
	}
	return "", fmt.Errorf("the test has no answer for %s", query)
}

// secretText is the answer of an action whose answer is a text.
func secretText(t *testing.T, text string) string {
	t.Helper()
	out, err := json.Marshal([]byte(text))
	require.NoError(t, err)
	return string(out)
}

// innermost is the key that query holds farthest in; empty if it holds none.
func innermost(answers map[string]any, query string) (part string) {
	at := -1
	for p := range answers {
		if n := strings.LastIndex(query, p); n > at {
			part, at = p, n
		}
	}
	return part
}

// all is everything that the engine was asked.
func (e *engine) all() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.asked, "\n")
}

// sample is a workflow with some steps of each kind.
func sample(t *testing.T, in contract.Inputs) *stages.Graph {
	t.Helper()
	g, err := stages.Wire(stages.Workflow{Name: config.Install, Wire: func(g *stages.Graph) error {
		stages.Add(g, contract.PreflightStep(), func() contract.PreflightInput { return contract.PreflightInput{} })
		node := g.Action(contract.NodeKey())
		stages.Add(g, contract.TerraformStep(), func() contract.TerraformInput { return contract.TerraformInput{} }, node)
		stages.Add(g, contract.ClusterStep(), func() contract.ClusterInput { return contract.ClusterInput{} })
		stages.Add(g, contract.ComponentStep().Named(contract.StagePreOrchestrator, "gitea"), func() contract.ComponentInput { return contract.ComponentInput{} })
		stages.Add(g, contract.SyncStep(), func() contract.AppsInput { return contract.AppsInput{} })
		return nil
	}}, in, nil, nil)
	require.NoError(t, err)
	return g
}
