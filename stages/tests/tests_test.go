package tests

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/kube/kubetest"
	"github.com/slipway-sh/slipway/stages/step"
)

const (
	atJob   = "/apis/batch/v1/namespaces/shop/jobs/ask"
	atWords = "/api/v1/namespaces/shop/configmaps/words"
	atList  = "/api/v1/namespaces/slipway-system/secrets/answers-test"

	askYAML   = "{apiVersion: batch/v1, kind: Job, metadata: {name: ask}, spec: {ttlSecondsAfterFinished: 0, template: {spec: {containers: [{name: ask, image: busybox, env: [{name: P, valueFrom: {secretKeyRef: {name: door, key: password}}}], envFrom: [{configMapRef: {name: words}}]}]}}}}\n"
	wordsYAML = "{apiVersion: v1, kind: ConfigMap, metadata: {name: words}, data: {a: b}}\n"

	answers = "tests: [{name: answers, path: tests, namespace: shop, images: [busybox], deadline: 10s}]\n"
)

// cluster has a release with tests, and controllers that do at once what is wanted.
type cluster struct {
	api   *kubetest.API
	env   *step.Env
	shown bytes.Buffer
	seen  map[string]map[string]any // Jobs and ConfigMaps, as they were made
}

func newCluster(t *testing.T, suites string, files map[string]string) *cluster {
	t.Helper()
	c := &cluster{api: kubetest.Serve(t), seen: map[string]map[string]any{}}
	c.api.Controller = func(path string, o map[string]any) {
		c.seen[path] = o
		switch {
		case strings.Contains(path, "/deployments/"):
			o["status"] = map[string]any{"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}
		case strings.Contains(path, "/jobs/"):
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}}
		}
	}
	c.env = step.NewEnv("r1", "test/answers", step.Dirs{State: t.TempDir(), Platform: t.TempDir()}, io.Discard, &c.shown)
	c.env.Deployment = "demo"
	require.NoError(t, os.MkdirAll(filepath.Dir(c.env.Kubeconfig), 0o700))
	text := fmt.Sprintf(`{"clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, c.api.URL)
	require.NoError(t, os.WriteFile(c.env.Kubeconfig, []byte(text), 0o600))
	all := map[string]string{platform.File: "apiVersion: slipway/v2\nname: sample\nversion: 1.0.0\nnamespaces: [{name: shop}]\ncomponents: [{name: web, kind: manifests, path: web.yaml, namespace: shop}]\n" + suites, "web.yaml": wordsYAML}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		file := filepath.Join(c.env.PlatformDir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	_, err := platform.Load(os.DirFS(c.env.PlatformDir))
	require.NoError(t, err)
	return c
}

// asks has the test answers, which is a Job and what it reads.
func asks(t *testing.T) *cluster {
	t.Helper()
	return newCluster(t, answers, map[string]string{"tests/ask.yaml": askYAML, "tests/words.yaml": wordsYAML})
}

func (c *cluster) test(ctx context.Context) (contract.Tested, error) {
	return test(ctx, c.env, contract.TestInput{Name: "answers", Images: map[string]string{"busybox": "slipway.local/busybox@sha256:00"}})
}

// requireClean asserts that nothing of the test is left.
func (c *cluster) requireClean(t *testing.T) {
	t.Helper()
	for _, path := range []string{atJob, atWords, atList} {
		require.Nil(t, c.api.Get(path), path)
	}
}

func TestATestIsMadeAnewAndRemoved(t *testing.T) {
	c := asks(t)
	c.api.Set(t, "/api/v1/namespaces/shop/secrets/door", "data: {username: c2hvcGtlZXBlcg==, password: b3BlbiBzZXNhbWU=}")
	for n := range 2 {
		out, err := c.test(t.Context())
		require.NoError(t, err)
		require.Equal(t, contract.Tested{Jobs: []string{"shop/ask"}}, out)
		c.requireClean(t)
		made := slices.DeleteFunc(c.api.Writes(), func(w string) bool { return w != "POST "+atJob })
		require.Len(t, made, n+1, "no earlier result is reused")
	}
	writes := c.api.Writes()
	list, words, job := slices.Index(writes, "PATCH "+atList), slices.Index(writes, "POST "+atWords), slices.Index(writes, "POST "+atJob)
	require.True(t, 0 <= list && list < words && words < job, "%v", writes)
	meta, _ := c.seen[atJob]["metadata"].(map[string]any)
	require.Equal(t, map[string]any{"slipway.sh/test": "answers", "slipway.sh/deployment": "demo", "app.kubernetes.io/managed-by": "slipway"}, meta["labels"])
	require.Contains(t, fmt.Sprint(c.seen[atJob]["spec"]), "image:slipway.local/busybox@sha256:00")
	require.NotContains(t, fmt.Sprint(c.seen[atJob]["spec"]), "ttlSecondsAfterFinished", "it must not go before it was seen to end")
	require.Equal(t, "shopkeeper says ***", c.env.Clean("shopkeeper says open sesame"), "what it reads is kept out of the log")
}

func TestATestThatFails(t *testing.T) {
	c := asks(t)
	complete := c.api.Controller
	c.api.Controller = func(path string, o map[string]any) {
		if complete(path, o); path == atJob {
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "Job has reached the specified backoff limit"}}}
		}
	}
	_, err := c.test(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: CodeFailed})
	require.Equal(t, fault.Step, fault.ClassOf(err))
	require.ErrorContains(t, err, "carry out the test answers: job shop/ask: BackoffLimitExceeded Job has reached the specified backoff limit")
	c.requireClean(t)
}

// TestATestWhoseLogIsLost has completed, and nobody knows what it counted.
func TestATestWhoseLogIsLost(t *testing.T) {
	c := asks(t)
	c.api.Set(t, "/api/v1/namespaces/shop/pods/ask-1", "{metadata: {name: ask-1, namespace: shop, uid: u, labels: {job-name: ask}}, status: {phase: Succeeded, containerStatuses: [{name: ask, state: {terminated: {exitCode: 0}}}]}}")
	tested, err := open(t.Context(), c.env, contract.TestInput{})
	require.NoError(t, err)
	tested.files.Name = "test answers"
	logs := newLogs(t.Context(), tested.client, io.Discard, nil)
	defer logs.close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = tested.watch(logs, "shop", "ask").rest(ctx, true)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeFailed})
	require.ErrorContains(t, err, "job shop/ask has completed, but its log cannot be read: ")
	_, err = tested.watch(logs, "shop", "ask").rest(ctx, false)
	require.NoError(t, err)
}

func TestATestThatTakesTooLong(t *testing.T) {
	for what, suites := range map[string]string{
		"a Job":  strings.Replace(answers, "10s", "1s", 1),
		"a gate": "tests: [{name: answers, ready: [{rollout: apps/v1/Deployment shop/web}], deadline: 1s}]\n",
	} {
		t.Run(what, func(t *testing.T) {
			c := newCluster(t, suites, map[string]string{"tests/ask.yaml": askYAML, "tests/words.yaml": wordsYAML})
			c.api.Controller = nil
			_, err := c.test(t.Context())
			require.ErrorIs(t, err, &fault.Fault{Code: CodeLate})
			require.Equal(t, fault.Timeout, fault.ClassOf(err))
			require.ErrorContains(t, err, "it has not ended within 1s: waited ")
			c.requireClean(t)
		})
	}
}

func TestATestOfGates(t *testing.T) {
	c := newCluster(t, "tests: [{name: answers, ready: [{cel: {object: v1/ConfigMap shop/words, expression: object.data.a == 'b'}}]}]\n", nil)
	c.api.Set(t, atWords, "data: {a: b}")
	out, err := c.test(t.Context())
	require.NoError(t, err)
	require.Equal(t, contract.Tested{Gates: []string{"object.data.a == 'b' of v1/ConfigMap shop/words"}}, out)
	require.Empty(t, c.api.Writes())
}

// TestWhatIsThereIsLeftAlone, whoever has it: somebody else, the platform, or another test.
func TestWhatIsThereIsLeftAlone(t *testing.T) {
	for what, labels := range map[string]string{
		"somebody else's": "{}", "the platform's": "{slipway.sh/deployment: demo}",
		"another test's": "{slipway.sh/deployment: demo, slipway.sh/test: other}",
		"another deployment's, of a test of that name": "{slipway.sh/deployment: blue, slipway.sh/test: answers}",
	} {
		t.Run(what, func(t *testing.T) {
			c := asks(t)
			c.api.Set(t, atWords, "{metadata: {name: words, namespace: shop, uid: u, labels: "+labels+", managedFields: [{manager: slipway}]}, data: {theirs: yes}}")
			_, err := c.test(t.Context())
			require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
			require.ErrorContains(t, err, "ConfigMap shop/words exists and is not its own")
			require.NotNil(t, c.api.Get(atWords))
			require.Equal(t, map[string]any{"theirs": true}, c.api.Get(atWords)["data"])
			require.Nil(t, c.api.Get(atJob))
			require.Nil(t, c.api.Get(atList))
		})
	}
}

func TestFilesThatAreNoTest(t *testing.T) {
	for text, says := range map[string]string{
		wordsYAML: "tests holds no Job",
		"a: [":    "decode tests/ask.yaml",
	} {
		c := newCluster(t, answers, map[string]string{"tests/ask.yaml": text})
		_, err := c.test(t.Context())
		require.ErrorIs(t, err, &fault.Fault{Code: contract.CodeUnusable})
		require.ErrorContains(t, err, says)
		require.Empty(t, c.api.Writes())
	}
}

// TestWhatAKilledRunLeft goes with the next one, of whatever tests.
func TestWhatAKilledRunLeft(t *testing.T) {
	for name, next := range map[string]func(*cluster) error{
		"the same test": func(c *cluster) error { _, err := c.test(t.Context()); return err },
		"another suite": func(c *cluster) error {
			out, err := leftovers(t.Context(), c.env, contract.LeftoversInput{})
			require.Equal(t, []string{"Job shop/ask"}, out.Removed)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := asks(t)
			ctx, kill := context.WithCancel(t.Context())
			c.api.Controller = func(path string, _ map[string]any) {
				if path == atJob {
					kill()
				}
			}
			_, err := c.test(ctx)
			require.ErrorIs(t, err, context.Canceled)
			c.requireClean(t)

			const ours = "{metadata: {name: ask, namespace: shop, uid: u, labels: {slipway.sh/deployment: demo, slipway.sh/test: answers}, managedFields: [{manager: slipway}]}}"
			c.api.Set(t, atJob, ours)
			c.api.Set(t, atWords, "{metadata: {name: words, namespace: shop, labels: {slipway.sh/deployment: demo}, managedFields: [{manager: slipway}]}}")
			client, err := kube.Connect(c.env.Kubeconfig, nil)
			require.NoError(t, err)
			require.NoError(t, client.KeepMembers(t.Context(), "demo", "answers-test", []kube.Member{
				{Kind: schema.GroupVersionKind{Group: "batch", Version: "v1", Kind: "Job"}, Namespace: "shop", Name: "ask"},
				{Kind: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Namespace: "shop", Name: "words"},
			}))
			c.api.Controller = func(string, map[string]any) {}
			if err := next(c); err != nil {
				require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign}, "the ConfigMap is the platform's")
			}
			require.Nil(t, c.api.Get(atJob))
			require.Nil(t, c.api.Get(atList))
			require.NotNil(t, c.api.Get(atWords))
		})
	}
}

func TestTestsOfAnotherReleaseThanTheOneThatIsThere(t *testing.T) {
	const atSystem = "/api/v1/namespaces/slipway-system"
	c := asks(t)
	says := func(text string) {
		t.Helper()
		_, err := leftovers(t.Context(), c.env, contract.LeftoversInput{Platform: "sample", Version: "1.0.0"})
		if text == "" {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, &fault.Fault{Code: CodeOther})
		require.ErrorContains(t, err, text)
	}
	says("the cluster does not have deployment demo")
	c.api.Set(t, atSystem, "metadata: {name: slipway-system, labels: {slipway.sh/deployment: blue}}")
	says("the cluster does not have deployment demo")
	c.api.Set(t, atSystem, "metadata: {labels: {slipway.sh/deployment: demo}}")
	says("the cluster has release none of no platform")
	client, err := kube.Connect(c.env.Kubeconfig, nil)
	require.NoError(t, err)
	has := func(rec installed.Record) { require.NoError(t, rec.Keep(t.Context(), client, "demo")) }
	has(installed.Record{Platform: "sample", Version: "0.9.0"})
	says("the cluster has release 0.9.0 of sample")
	has(installed.Record{Platform: "sample", Version: "0.9.0", Toward: "1.0.0"})
	says("the upgrade from 0.9.0 to 1.0.0 has begun and is not finished")
	has(installed.Record{Platform: "sample", Version: "1.0.0"})
	before := c.api.Writes()
	says("")
	require.Equal(t, before, c.api.Writes())
}

func TestAWorkload(t *testing.T) {
	const (
		atWeb, atClaim, atFill = "/apis/apps/v1/namespaces/shop/deployments/site", "/api/v1/namespaces/shop/persistentvolumeclaims/data", atJob
		atObjects              = "/api/v1/namespaces/slipway-system/secrets/site-workload"
	)
	c := newCluster(t, "workloads: [{name: site, path: site, check: check.yaml, namespace: shop, deadline: 10s}]\n", map[string]string{
		"site/web.yaml":   "{apiVersion: apps/v1, kind: Deployment, metadata: {name: site}, spec: {selector: {matchLabels: {app: site}}, template: {metadata: {labels: {app: site}}}}}\n",
		"site/claim.yaml": "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}}\n",
		"site/fill.yaml":  askYAML,
		"check.yaml":      strings.ReplaceAll(askYAML, "name: ask}", "name: look}"),
	})
	in := contract.TestInput{Name: "site"}
	_, err := check(t.Context(), c.env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeAbsent})

	c.api.Set(t, atClaim, "metadata: {name: data, namespace: shop, labels: {slipway.sh/deployment: demo}, managedFields: [{manager: slipway}]}")
	_, err = deploy(t.Context(), c.env, in)
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign})
	require.ErrorContains(t, err, "PersistentVolumeClaim shop/data exists and is not its own")
	require.Empty(t, c.api.Writes())
	c.api.Delete(atClaim)

	out, err := deploy(t.Context(), c.env, in)
	require.NoError(t, err)
	require.Equal(t, []string{"Deployment/site"}, out.Workloads)
	require.ElementsMatch(t, []string{"PersistentVolumeClaim shop/data", "Job shop/ask", "Deployment shop/site"}, out.Objects)
	before := len(c.api.Writes())
	_, err = deploy(t.Context(), c.env, in)
	require.NoError(t, err)
	require.Len(t, c.api.Writes(), before, "a second time changes nothing")

	c.api.Set(t, atFill, "status: {conditions: [{type: Failed, status: 'True'}]}")
	_, err = deploy(t.Context(), c.env, in)
	require.NoError(t, err, "a Job that failed is made again")
	require.Contains(t, c.api.Writes(), "DELETE "+atFill)

	tested, err := check(t.Context(), c.env, in)
	require.NoError(t, err)
	require.Equal(t, []string{"shop/look"}, tested.Jobs)
	require.NotNil(t, c.api.Get(atWeb))

	_, err = leftovers(t.Context(), c.env, contract.LeftoversInput{})
	require.NoError(t, err)
	require.NotNil(t, c.api.Get(atClaim), "no test has left it")

	out, err = destroy(t.Context(), c.env, in)
	require.NoError(t, err)
	require.Len(t, out.Objects, 3)
	for _, path := range []string{atWeb, atClaim, atFill, atObjects} {
		require.Nil(t, c.api.Get(path), path)
	}
	out, err = destroy(t.Context(), c.env, in)
	require.NoError(t, err)
	require.Empty(t, out.Objects)
}

// TestThePodsOfAStoppedClusterAreWaitedFor: see kube.Client.AwaitPods.
func TestThePodsOfAStoppedClusterAreWaitedFor(t *testing.T) {
	c := asks(t)
	asked := 0
	pods := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer pods.Close()
	_, err := leftovers(t.Context(), c.env, contract.LeftoversInput{Pods: pods.URL})
	require.NoError(t, err)
	require.Equal(t, 1, asked)
}

// TestAnObjectWhoseAnswerWasLost is the run's own, though it is there already.
func TestAnObjectWhoseAnswerWasLost(t *testing.T) {
	const ours = "{metadata: {name: words, namespace: shop, uid: u, labels: {slipway.sh/deployment: demo, slipway.sh/test: answers}, annotations: {slipway.sh/run: %s}, managedFields: [{manager: slipway}]}}"
	c := asks(t)
	c.api.Set(t, atWords, fmt.Sprintf(ours, "r1"))
	_, err := c.test(t.Context())
	require.NoError(t, err)
	c.requireClean(t)

	c.api.Set(t, atWords, fmt.Sprintf(ours, "r0"))
	_, err = c.test(t.Context())
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeForeign}, "of another run, and on no list")
}
