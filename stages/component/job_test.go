package component

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

const (
	atSeed      = "/apis/batch/v1/namespaces/shop/jobs/seed"
	atDone      = "/api/v1/namespaces/slipway-system/secrets/seed-jobs"
	seedRelease = "  - {name: seed, kind: job, path: jobs, namespace: shop}\n"
	seedYAML    = "{apiVersion: batch/v1, kind: Job, metadata: {name: seed}, spec: {template: {spec: {containers: [{name: seed, image: i, command: [seed, WORDS]}], volumes: [{name: rows, configMap: {name: rows}}]}}}}\n"
	rowsYAML    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: rows}, data: {rows: DATA}}\n"
)

// seeds are the files of a job that does words with data.
func seeds(words, data string) map[string]string {
	return map[string]string{"jobs/seed.yaml": strings.ReplaceAll(seedYAML, "WORDS", words), "jobs/rows.yaml": strings.ReplaceAll(rowsYAML, "DATA", data)}
}

func seedInput() contract.ComponentInput { return contract.ComponentInput{Component: "seed"} }

// made counts how often the Job was made.
func (s *fixture) made() int {
	n := 0
	for _, w := range s.api.Writes() {
		if w == "PATCH "+atSeed {
			n++
		}
	}
	return n
}

func TestAJobIsMadeOnce(t *testing.T) {
	s := newFixture(t, seedRelease, seeds("once", "a"))
	_, err := s.verify(t.Context(), seedInput())
	require.ErrorIs(t, err, plan.ErrChange)
	require.Empty(t, s.api.Writes())

	out, err := s.install(t.Context(), seedInput())
	require.NoError(t, err)
	require.Equal(t, contract.Component{Objects: 2, Changed: 2}, out)
	require.Less(t, slices.Index(s.api.Writes(), "PATCH /api/v1/namespaces/shop/configmaps/rows"), slices.Index(s.api.Writes(), "PATCH "+atSeed), "what it reads is there before")
	require.Equal(t, "demo", s.at(atSeed, "metadata", "labels", kube.DeploymentLabel))
	digest, _ := s.at(atSeed, "metadata", "annotations", workAnnotation).(string)
	require.Regexp(t, `^[0-9a-f]{64}$`, digest)
	require.Equal(t, map[string]any{"shop.seed": base64.StdEncoding.EncodeToString([]byte(digest))}, s.at(atDone, "data"))
	require.Contains(t, s.shown.String(), "job shop/seed was made")
	s.held(t, seedInput())
	require.Equal(t, 1, s.made())

	s.api.Delete(atSeed)
	s.held(t, seedInput())
	require.Nil(t, s.api.Get(atSeed), "it has completed; somebody has cleared it away")

	s.api.Delete(atDone)
	_, err = s.verify(t.Context(), seedInput())
	require.ErrorIs(t, err, plan.ErrChange)
	out, err = s.install(t.Context(), seedInput())
	require.NoError(t, err)
	require.Equal(t, 1, out.Changed, "nobody knows that it has")
	require.Equal(t, 2, s.made())
}

// TestAJobThatTheReleaseHasNoMoreIsDeleted, also one that failed; one that another component
// has now is not.
func TestAJobThatTheReleaseHasNoMoreIsDeleted(t *testing.T) {
	const atOld, atMoved = "/apis/batch/v1/namespaces/shop/jobs/old", "/apis/batch/v1/namespaces/shop/jobs/moved"
	named := func(name string) string {
		return strings.NewReplacer("name: seed}, spec", "name: "+name+"}, spec", ", volumes: [{name: rows, configMap: {name: rows}}]", "").Replace(seedYAML)
	}
	files := seeds("once", "a")
	files["jobs/old.yaml"], files["jobs/moved.yaml"] = named("old"), named("moved")
	s := newFixture(t, seedRelease, files)
	completes := s.api.Controller
	s.api.Controller = func(path string, o map[string]any) {
		if completes(path, o); path == atOld {
			o["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Failed", "status": "True"}}}
		}
	}
	_, err := s.install(t.Context(), seedInput())
	require.ErrorIs(t, err, &fault.Fault{Code: CodeJob})
	require.NotNil(t, s.api.Get(atOld))
	require.NotNil(t, s.api.Get(atMoved))

	files = seeds("once", "a")
	files["later/moved.yaml"] = named("moved")
	s.release(t, seedRelease+"  - {name: later, kind: job, path: later, namespace: shop}\n", files)
	_, err = s.verify(t.Context(), seedInput())
	require.ErrorIs(t, err, plan.ErrChange)
	out, err := s.install(t.Context(), seedInput())
	require.NoError(t, err)
	require.Equal(t, 2, out.Changed, "one was made, one deleted")
	require.Nil(t, s.api.Get(atOld))
	require.NotNil(t, s.api.Get(atMoved))
	require.Contains(t, s.shown.String(), "deleted objects that the release no longer has: Job shop/old")
	s.held(t, seedInput())
	_, err = s.install(t.Context(), contract.ComponentInput{Component: "later"})
	require.NoError(t, err)
	require.Contains(t, s.at("/api/v1/namespaces/slipway-system/secrets/later-jobs", "data"), "shop.moved", "and is not carried out again")
	require.NotContains(t, s.shown.String(), "job shop/moved is made again")
}

// TestAJobThatCompletedUnnoticed: its run was killed before that was noted.
func TestAJobThatCompletedUnnoticed(t *testing.T) {
	s := newFixture(t, seedRelease, seeds("once", "a"))
	_, err := s.install(t.Context(), seedInput())
	require.NoError(t, err)
	s.api.Delete(atDone)
	out, err := s.install(t.Context(), seedInput())
	require.NoError(t, err)
	require.Zero(t, out.Changed)
	require.Equal(t, 1, s.made())
	require.NotEmpty(t, s.at(atDone, "data", "shop.seed"))
}

func TestAJobIsMadeAgainWhenItDoesSomethingElse(t *testing.T) {
	for what, change := range map[string]func(t *testing.T, s *fixture){
		"its command":   func(t *testing.T, s *fixture) { s.release(t, seedRelease, seeds("twice", "a")) },
		"what it reads": func(t *testing.T, s *fixture) { s.release(t, seedRelease, seeds("once", "b")) },
		"it has failed": func(t *testing.T, s *fixture) {
			s.api.Set(t, atSeed, "status: {conditions: [{type: Failed, status: 'True', reason: Evicted}]}")
		},
		"it is being deleted": func(t *testing.T, s *fixture) {
			s.api.Set(t, atSeed, "metadata: {deletionTimestamp: '2026-01-02T03:04:05Z'}")
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := newFixture(t, seedRelease, seeds("once", "a"))
			_, err := s.install(t.Context(), seedInput())
			require.NoError(t, err)
			first := s.at(atSeed, "metadata", "uid")
			change(t, s)
			_, err = s.verify(t.Context(), seedInput())
			require.ErrorIs(t, err, plan.ErrChange)
			require.Equal(t, first, s.at(atSeed, "metadata", "uid"))

			out, err := s.install(t.Context(), seedInput())
			require.NoError(t, err)
			require.Positive(t, out.Changed)
			require.NotEqual(t, first, s.at(atSeed, "metadata", "uid"), "a Job cannot be changed")
			require.Contains(t, s.shown.String(), "job shop/seed is made again")
			require.Equal(t, 2, s.made())
			digest, _ := s.at(atSeed, "metadata", "annotations", workAnnotation).(string)
			require.Equal(t, base64.StdEncoding.EncodeToString([]byte(digest)), s.at(atDone, "data", "shop.seed"))
			s.held(t, seedInput())
		})
	}
}

// TestAJobThatIsNotThereAnyMoreAndDoesSomethingElse is made.
func TestAJobThatIsNotThereAnyMoreAndDoesSomethingElse(t *testing.T) {
	s := newFixture(t, seedRelease, seeds("once", "a"))
	_, err := s.install(t.Context(), seedInput())
	require.NoError(t, err)
	s.api.Delete(atSeed)
	s.release(t, seedRelease, seeds("twice", "a"))
	out, err := s.install(t.Context(), seedInput())
	require.NoError(t, err)
	require.Equal(t, 1, out.Changed)
	require.Equal(t, 2, s.made())
}

func TestAJobThatFails(t *testing.T) {
	s := newFixture(t, seedRelease, seeds("once", "a"))
	completes := s.api.Controller
	s.api.Controller = func(path string, o map[string]any) {
		if path == atSeed {
			o["status"] = map[string]any{"failed": 7, "conditions": []any{map[string]any{"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "it was tried 7 times"}}}
		}
	}
	s.api.Set(t, "/api/v1/namespaces/shop/pods/seed-x", `
metadata: {name: seed-x, namespace: shop, labels: {job-name: seed}}
status:
  phase: Running
  conditions: [{type: Ready, status: 'False'}]
  containerStatuses: [{name: seed, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error}}}]
`)
	_, err := s.install(t.Context(), seedInput())
	refused(t, err, CodeJob, "carry out job shop/seed: BackoffLimitExceeded it was tried 7 times: container seed ", "exit code 3", "pod seed-x")
	f := new(fault.Fault)
	require.ErrorAs(t, err, &f)
	require.Equal(t, "correct the cause, then run the same command again; its log: slipway toolchain -- kubectl logs -n shop job/seed", f.Fix)
	require.Nil(t, s.api.Get(atDone), "it has not completed")
	require.Contains(t, s.listed(t, "seed"), "Job shop/seed", "it is known to who removes the component")
	_, err = s.verify(t.Context(), seedInput())
	require.ErrorIs(t, err, plan.ErrChange, "it would be made again")

	s.api.Controller = completes
	_, err = s.install(t.Context(), seedInput())
	require.NoError(t, err, "and is")
	require.Equal(t, 2, s.made())
	require.NotNil(t, s.api.Get(atDone))
}

// TestAJobWhosePodsAreGoneWhenItHasFailed: what they wrote is known still.
func TestAJobWhosePodsAreGoneWhenItHasFailed(t *testing.T) {
	const pod = "/api/v1/namespaces/shop/pods/seed-x"
	s := newFixture(t, seedRelease, seeds("once", "a"))
	s.api.Controller = func(path string, o map[string]any) {
		if path == atSeed {
			o["status"] = map[string]any{"active": 1}
		}
	}
	s.api.Set(t, pod, `
metadata: {name: seed-x, namespace: shop, labels: {job-name: seed}}
status:
  phase: Running
  conditions: [{type: Ready, status: 'False'}]
  containerStatuses: [{name: seed, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 3, reason: Error}}}]
`)
	s.api.Set(t, "/api/v1/namespaces/shop/events/other", `
metadata: {name: other, namespace: shop}
reason: FailedCreate
message: "Create Pod db-0 in StatefulSet db failed: claim exists"
involvedObject: {kind: StatefulSet, name: db, namespace: shop}
`)
	s.api.Set(t, "/api/v1/namespaces/shop/events/earlier", `
metadata: {name: earlier, namespace: shop}
reason: FailedCreate
message: "the quota was used up"
involvedObject: {kind: Job, name: seed, namespace: shop}
`)
	time.AfterFunc(podsEvery+time.Second, func() {
		s.api.Delete(pod)
		s.api.Set(t, atSeed, `
metadata: {name: seed, namespace: shop}
status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: it was tried 4 times}]}
`)
	})
	_, err := s.install(t.Context(), seedInput())
	refused(t, err, CodeJob, "it was tried 4 times: container seed ", "exit code 3", "pod seed-x")
	require.NotContains(t, err.Error(), "db-0")
	require.NotContains(t, err.Error(), "quota")
}

// TestAJobThatIsGone before anybody has seen it complete ends the wait.
func TestAJobThatIsGone(t *testing.T) {
	for what, meanwhile := range map[string]func(s *fixture){
		"it alone":                    func(s *fixture) { s.api.Delete(atSeed) },
		"and another is in its place": func(s *fixture) { s.api.Set(t, atSeed, "metadata: {uid: another}") },
	} {
		t.Run(what, func(t *testing.T) {
			s := newFixture(t, seedRelease, seeds("once", "a"))
			s.api.Controller = func(path string, o map[string]any) {
				if path == atSeed {
					o["status"] = map[string]any{"active": 1}
				}
			}
			time.AfterFunc(time.Second, func() { meanwhile(s) })
			begun := time.Now()
			_, err := s.install(t.Context(), seedInput())
			refused(t, err, CodeJob, "carry out job shop/seed: it is gone, and nobody has seen it complete: somebody has deleted it, or its ttlSecondsAfterFinished is too short")
			require.Less(t, time.Since(begun), 30*time.Second)
			require.Nil(t, s.api.Get(atDone), "it has not completed")
		})
	}
}

// TestAJobThatNobodyCouldSeeComplete is refused before anything is made.
func TestAJobThatNobodyCouldSeeComplete(t *testing.T) {
	files := seeds("once", "a")
	files["jobs/seed.yaml"] = strings.Replace(seedYAML, "spec: {template", "spec: {ttlSecondsAfterFinished: 0, template", 1)
	s := newFixture(t, seedRelease, files)
	_, err := s.install(t.Context(), seedInput())
	refused(t, err, contract.CodeUnusable, "read the manifests of component seed: the Job seed is gone before anybody can see that it has completed: remove its ttlSecondsAfterFinished: 0, ")
	require.Empty(t, s.api.Writes())

	files["jobs/seed.yaml"] = strings.Replace(seedYAML, "spec: {template", "spec: {ttlSecondsAfterFinished: 60, template", 1)
	s.release(t, seedRelease, files)
	_, err = s.install(t.Context(), seedInput())
	require.NoError(t, err)
}

func TestAJobThatTakesTooLong(t *testing.T) {
	s := newFixture(t, seedRelease, seeds("once", "a"))
	s.api.Controller = func(path string, o map[string]any) {
		if path == atSeed {
			o["status"] = map[string]any{"active": 1}
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := s.install(ctx, seedInput())
	require.ErrorIs(t, err, &fault.Fault{Code: kube.CodeWait})
	require.Equal(t, fault.Timeout, fault.ClassOf(err))
	require.ErrorContains(t, err, "for job shop/seed to complete; last seen: 1 active, 0 failed: there is no pod")
	_, err = s.verify(t.Context(), seedInput())
	require.ErrorContains(t, err, "job shop/seed has not completed: 1 active, 0 failed")
	require.Equal(t, 1, s.made(), "the one that runs stays")
}
