package stages

import (
	"encoding/json"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/pipeline"
	"github.com/slipway-sh/slipway/pipeline/journal"
	"github.com/slipway-sh/slipway/providers"
	"github.com/slipway-sh/slipway/providers/local"
	"github.com/slipway-sh/slipway/stages/contract"
)

func TestAnAddressDoesNotMakeAnEarlierResultInvalid(t *testing.T) {
	lasting := func(address string) string {
		in := contract.PublishInput{Git: contract.Git{GitServer: contract.GitServer{URL: "https://gitea.example.org", Address: address}}}
		b, err := json.Marshal(in.CacheKey())
		require.NoError(t, err)
		return string(b)
	}
	require.Equal(t, lasting("10.0.0.1:443"), lasting("10.0.0.2:443"))
	require.Contains(t, lasting("10.0.0.1:443"), "gitea.example.org")
}

// TestTheStepsOfComponentsShareTheirCode: a request names it, and only theirs do.
func TestTheStepsOfComponentsShareTheirCode(t *testing.T) {
	r := Requests{Inputs: contract.Inputs{Config: config.Default()}}
	web, err := r.Of(contract.ComponentStep().Named(contract.StageOrchestrator, "web").Spec, contract.ComponentInput{Component: "web"})
	require.NoError(t, err)
	require.Equal(t, []string{"orchestrator/web", "orchestrator/component"}, []string{web.ID(), web.Code})
	db, err := r.Of(contract.ComponentStep().Named(contract.StagePreOrchestrator, "db").Spec, contract.ComponentInput{Component: "web"})
	require.NoError(t, err)
	require.Equal(t, []string{"preorchestrator/db", "orchestrator/component"}, []string{db.ID(), db.Code})
	require.NotEqual(t, web.Digests, db.Digests, "a result is that of one step")
	git, err := r.Of(contract.GitStep().Spec, contract.GitInput{})
	require.NoError(t, err)
	require.Empty(t, git.Code)
}

func TestAnEarlierResultCountsForAllThatTheStepReads(t *testing.T) {
	of := func(s contract.Spec, input string, change func(*Requests)) journal.Digests {
		r := Requests{Inputs: contract.Inputs{Config: config.Default()}}
		if change != nil {
			change(&r)
		}
		return r.digests(s, []byte(input))
	}
	release := func(r *Requests) { r.ReleaseDigest = "sha256:1" }
	named := func(name string) pipeline.Key { return pipeline.Key{Stage: "a", Name: name} }
	reads, other := contract.Spec{Key: named("b"), Platform: true}, contract.Spec{Key: named("b")}
	base := of(reads, "{}", nil)
	require.Equal(t, base, of(reads, "{}", nil))
	require.Equal(t, []string{"tools"}, base.Changed(of(reads, "{}", func(r *Requests) { r.ImagesDigest = "sha256:1" })))
	require.Equal(t, []string{"platform release"}, base.Changed(of(reads, "{}", release)))
	require.Equal(t, of(other, "{}", nil), of(other, "{}", release), "it does not read the platform release")
	require.Equal(t, []string{"input (settings and results of earlier steps)"}, base.Changed(of(contract.Spec{Key: named("c"), Platform: true}, "{}", nil)))
	require.Equal(t, []string{"input (settings and results of earlier steps)"}, base.Changed(of(reads, "[]", nil)))
}

// otherRoot is provider local with other files in its Terraform root.
type otherRoot struct {
	local.Provider
	files fs.FS
}

func (o otherRoot) Terraform(d providers.Deployment) (providers.Root, error) {
	root, err := o.Provider.Terraform(d)
	root.Files = o.files
	return root, err
}

func TestAnotherTerraformRootIsAnotherInput(t *testing.T) {
	of := func(text string) contract.TerraformInput {
		environment, err := EnvironmentOf(otherRoot{files: fstest.MapFS{"main.tf": {Data: []byte(text)}}}, providers.Deployment{Name: "demo"})
		require.NoError(t, err)
		return environment.Terraform
	}
	require.Equal(t, of("# a"), of("# a"))
	require.NotEqual(t, of("# a"), of("# b"))
}
