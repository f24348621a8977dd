package component

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/plan"
)

// preview has the step of a component planned, and checks that nothing was written.
func (s *fixture) preview(t *testing.T, in contract.ComponentInput) *plan.Plan {
	t.Helper()
	before := len(s.api.Writes())
	p := &plan.Plan{}
	_, err := run(t.Context(), s.env.Planned(p.Of("orchestrator/"+in.Component)), in)
	require.NoError(t, err)
	require.Len(t, s.api.Writes(), before)
	return p
}

// value is a field of an object that a plan has come to.
func value(t *testing.T, p *plan.Plan, path string, fields ...string) any {
	t.Helper()
	o, known := p.At(path)
	require.True(t, known, path)
	var v any = o.After
	for _, f := range fields {
		m, _ := v.(map[string]any)
		v = m[f]
	}
	return v
}

func TestAPlanOfManifests(t *testing.T) {
	s := newFixture(t, webRelease, map[string]string{"web/web.yaml": webYAML, "web/page.yaml": pageYAML})
	p := s.preview(t, webInput())
	web, known := p.At(atWeb)
	require.True(t, known)
	require.Nil(t, web.Before, "it is made")
	require.Equal(t, "orchestrator/web", web.Step)
	require.Equal(t, "hello", value(t, p, atPage, "data", "index"))

	_, err := s.install(t.Context(), webInput())
	require.NoError(t, err)
	s.api.Set(t, atPage, "data: {index: edited}")
	p = s.preview(t, webInput())
	page, _ := p.At(atPage)
	require.Equal(t, "edited", page.Before["data"].(map[string]any)["index"])
	require.Equal(t, "hello", value(t, p, atPage, "data", "index"))

	s.api.Set(t, atWeb, "spec: {replicas: 3}")
	p = s.preview(t, webInput())
	web, _ = p.At(atWeb)
	require.EqualValues(t, 3, web.Before["spec"].(map[string]any)["replicas"])
	require.EqualValues(t, 1, value(t, p, atWeb, "spec", "replicas"), "somebody has scaled it")

	s.release(t, webRelease, map[string]string{"web/web.yaml": webYAML})
	p = s.preview(t, webInput())
	page, known = p.At(atPage)
	require.True(t, known)
	require.NotNil(t, page.Before)
	require.Nil(t, page.After, "the release has it no more")
}

func TestAPlanOfAJob(t *testing.T) {
	s := newFixture(t, "\n  - {name: migrate, kind: job, path: job.yaml, namespace: shop}\n", map[string]string{
		"job.yaml": "{apiVersion: batch/v1, kind: Job, metadata: {name: migrate}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}\n",
	})
	in := contract.ComponentInput{Component: "migrate"}
	notes := s.preview(t, in).Notes()
	require.Len(t, notes, 1)
	require.Equal(t, "Job shop/migrate", notes[0].(contract.PlannedChange).Name)
	_, err := s.install(t.Context(), in)
	require.NoError(t, err)
	require.Empty(t, s.preview(t, in).Notes())
	s.api.Set(t, "/apis/batch/v1/namespaces/shop/jobs/migrate", "metadata: {annotations: {"+workAnnotation+": other}}")
	notes = s.preview(t, in).Notes()
	require.Equal(t, contract.PlannedChange{Of: contract.PlanJobs, Action: contract.PlanRun, Name: "Job shop/migrate", Note: "what it does has changed"}, notes[0])
}
