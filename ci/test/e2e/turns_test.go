package e2e

import (
	"cmp"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
)

// atOnce is how many tests use the engine at the same time. Each cluster computes even when
// nobody waits for it: more of them on two processors slow each other down.
const atOnce = 2

// longest are the tests that take longest. They begin first, so that the others fill the
// time beside them, and none is left alone at the end.
var longest = []string{
	"TestLifecycle", "TestExistingCluster", "TestUpgradeMatrix", "TestIdentityPlatform", "TestBackgroundCluster",
	"TestABrokenUpgrade", "TestStepsOnANode", "TestImagesOfAnyChart", "TestTwoDeploymentsSideBySide",
}

// queue gives out the turns of tests.
type queue struct {
	mu      sync.Mutex
	free    int
	waiting []turn
}

type turn struct {
	test  string
	begin chan struct{}
}

var turns, besides = queue{free: atOnce}, queue{free: 1}

// inTurn lets a test run beside others, when its turn comes.
func inTurn(t *testing.T) {
	t.Helper()
	turns.await(t)
}

// beside lets a test run beside those, one at a time: one that mostly waits, or whose cluster
// has little to do.
func beside(t *testing.T) {
	t.Helper()
	besides.await(t)
}

func (q *queue) await(t *testing.T) {
	t.Helper()
	t.Parallel()
	came := time.Now()
	<-q.take(t.Name())
	t.Cleanup(q.give)
	t.Logf("its turn came after %s", time.Since(came).Round(time.Second))
}

// all reports whether tests are wanted for which CI has no time.
func all() bool { return os.Getenv("SLIPWAY_E2E") == "all" }

// takesLong skips a test for which CI has no time.
func takesLong(t *testing.T) {
	t.Helper()
	if !all() {
		t.Skip("make test-all runs it")
	}
}

// long is a part of a test for which CI has no time.
func long(part func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		takesLong(t)
		part(t)
	}
}

func (q *queue) take(test string) <-chan struct{} {
	q.mu.Lock()
	defer q.mu.Unlock()
	begin := make(chan struct{})
	q.waiting = append(q.waiting, turn{test, begin})
	time.AfterFunc(time.Second, q.next) // others may come at the same moment
	return begin
}

func (q *queue) give() {
	q.mu.Lock()
	q.free++
	q.mu.Unlock()
	q.next()
}

func (q *queue) next() {
	q.mu.Lock()
	defer q.mu.Unlock()
	rank := func(t turn) int {
		if at := slices.Index(longest, t.test); at >= 0 {
			return at
		}
		return len(longest)
	}
	slices.SortStableFunc(q.waiting, func(a, b turn) int { return cmp.Compare(rank(a), rank(b)) })
	for q.free > 0 && len(q.waiting) > 0 {
		close(q.waiting[0].begin)
		q.waiting = q.waiting[1:]
		q.free--
	}
}
