package platform_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
)

func TestTheTestsOfARelease(t *testing.T) {
	files := release(
		`{name: web, kind: manifests, path: web, namespace: demo}`,
		`{name: db, kind: chart, path: chart, namespace: demo}`,
	)
	text := files[platform.File]
	text.Data = append(text.Data, `tests:
  - {name: answers, suites: [smoke, full], component: web, path: job.yaml, namespace: demo, images: [busybox], deadline: 1m}
  - {name: open, ready: [{endpoint: "demo/db:5432"}]}
workloads:
  - {name: visitors, component: db, path: web, check: job.yaml, namespace: demo}
`...)
	r, err := platform.Load(files)
	require.NoError(t, err)
	require.Equal(t, []string{"smoke", "full"}, r.Suites())
	require.Equal(t, []string{"full"}, r.Tests[1].Suites, "the default")
	require.Equal(t, config.Duration(5*time.Minute), r.Tests[1].Deadline)
	require.Equal(t, config.Duration(5*time.Minute), r.Tests[1].Ready[0].Deadline)
	require.Equal(t, platform.Component{Name: "test answers", Kind: platform.Job, Path: "job.yaml", Namespace: "demo", Images: []string{"busybox"}}, r.Tests[0].Files())
	require.Equal(t, "job.yaml", r.Workloads[0].Checks().Path)
	require.Equal(t, platform.Manifests, r.Workloads[0].Files().Kind)

	require.Len(t, r.TestsOn(nil), 2)
	require.Equal(t, r.Tests[1:], r.TestsOn([]string{"web"}), "what is off is not tried")
	require.Len(t, r.WorkloadsOn([]string{"web"}), 1)
	require.Empty(t, r.WorkloadsOn([]string{"db"}))
}
