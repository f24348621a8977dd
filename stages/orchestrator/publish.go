package orchestrator

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/gitserver"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/step"
)

func runPublish(ctx context.Context, env *step.Env, in contract.PublishInput) (contract.Publication, error) {
	r, c, err := env.Open()
	if err != nil {
		return contract.Publication{}, err
	}
	tree, err := buildTree(os.DirFS(filepath.Join(env.PlatformDir, filepath.FromSlash(r.GitOps.Tree))), r, env.Deployment, in)
	if err != nil {
		return contract.Publication{}, err
	}
	if in.Git, err = releaseGit(ctx, c, r, in); err != nil {
		return contract.Publication{}, err
	}
	user, err := gitserver.Account(ctx, c, in.Git.GitServer, in.Git.Writer, env.Redact)
	if err != nil {
		return contract.Publication{}, err
	}
	return publish(ctx, env, user, tree, r, in)
}

// releaseGit is the git server of the release. A plan may have in from the state: whoever may write
// the state must not choose which Secret is read, or who gets its content.
func releaseGit(ctx context.Context, c *kube.Client, r *platform.Release, in contract.PublishInput) (contract.Git, error) {
	git, server := in.Git, r.GitServer()
	if server == nil {
		return git, r.NoGitServer()
	}
	of := func(url string) bool {
		return slices.ContainsFunc(server.Hosts, func(h string) bool {
			return url == "https://"+platform.Fill(h, map[string]string{platform.FillDomain: in.Values.Domain})
		})
	}
	if !of(git.URL) || !of(git.ClusterURL) || git.Repository != server.Repository {
		return git, plan.Later("the address of the git server")
	}
	git.Writer = server.Accounts.Writer
	namespace, name, port, err := platform.ParseService(server.Service)
	if err == nil {
		git.Address, err = readiness.WaitAddress(ctx, c, namespace, name, port)
	}
	return git, err
}

// publish pushes tree unless the branch holds it already.
func publish(ctx context.Context, env *step.Env, user *gitserver.Server, tree gitserver.Tree, r *platform.Release, in contract.PublishInput) (contract.Publication, error) {
	if env.Plan != nil {
		return planPublish(ctx, env, user, tree, in)
	}
	revision, changed, err := user.Push(ctx, in.Git.Repository, contract.Branch, tree, gitserver.Commit{
		Author: "Slipway", Email: "slipway@" + in.Values.Domain, When: time.Now(),
		Message: fmt.Sprintf("%s %s for %s", r.Name, r.Version, env.Deployment),
	})
	if err != nil {
		return contract.Publication{}, &fault.Fault{
			Code: gitserver.CodePush, Class: step.ClassOf(err), Op: "push the GitOps tree", Err: err,
			Fix: "look at the git server, " + in.Git.URL + ", then run the same command again",
		}
	}
	verb := "is already at"
	if changed {
		verb = "is now at"
	}
	env.Progress("%s %s %s, %d files", in.Git.Repository, verb, argo.Short(revision), len(tree))
	return contract.Publication{Revision: revision, Changed: changed}, nil
}

func planPublish(ctx context.Context, env *step.Env, user *gitserver.Server, tree gitserver.Tree, in contract.PublishInput) (contract.Publication, error) {
	found, err := user.Compare(ctx, in.Git.Repository, contract.Branch, tree)
	if err != nil {
		return contract.Publication{}, plan.Later("what the git server has (%v)", err)
	}
	env.Plan.Note(contract.PlanBasis{Git: in.Git.Repository + "@" + found.Revision})
	for action, names := range map[string][]string{contract.PlanAdd: found.Added, contract.PlanChange: found.Changed, contract.PlanRemove: found.Removed} {
		for _, name := range names {
			env.Plan.Change("push %s", name)
			env.Plan.Note(contract.PlannedChange{Of: contract.PlanFiles, Action: action, Name: name})
		}
	}
	return contract.Publication{Revision: found.Revision}, nil
}

// buildTree reads the release's GitOps folder and adds what Slipway fills in.
func buildTree(fsys fs.FS, r *platform.Release, deployment string, in contract.PublishInput) (gitserver.Tree, error) {
	tree := gitserver.Tree{}
	size := 0
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := bounded.FS(fsys, p, bounded.Generated)
		if err != nil {
			return err
		}
		if size += len(b); size > bounded.Packed {
			return fmt.Errorf("the files of folder %s are larger than %d MiB together", r.GitOps.Tree, bounded.Packed>>20)
		}
		tree[p] = b
		return nil
	})
	if err != nil {
		return nil, badTree(err)
	}
	if !slices.ContainsFunc(r.Components, func(c platform.Component) bool { return c.Kind == platform.App }) {
		return tree, nil
	}
	if _, ok := tree[RootChart+"/Chart.yaml"]; !ok {
		return nil, badTree(fmt.Errorf("folder %s holds no chart %s", r.GitOps.Tree, RootChart))
	}
	generated := RootChart + "/" + RootValues
	if _, taken := tree[generated]; taken {
		return nil, badTree(fmt.Errorf("%s is Slipway's to write", generated))
	}
	values, err := rootValues(r, deployment, in.Values, repository{Revision: contract.Branch, URL: in.Git.CloneURL(in.Git.Repository)})
	if err != nil {
		return nil, err
	}
	b, err := yaml.Marshal(values)
	if err != nil {
		return nil, badTree(fmt.Errorf("encode the values of %s: %w", RootChart, err))
	}
	tree[generated] = append([]byte("# Written by Slipway; a change made here is undone by the next run.\n"), b...)
	return tree, nil
}

func badTree(err error) error {
	return &fault.Fault{
		Code: contract.CodeUnusable, Class: fault.Step, Op: "build the GitOps tree", Err: err,
		Fix: "correct the platform release, then run the same command again",
	}
}

// values is what the root app's chart gets. Its fields are in the order in which
// they are written, so that equal inputs give equal files.
type values struct {
	Applications   applications         `json:"applications"`
	Components     map[string]component `json:"components"`
	Deployment     string               `json:"deployment"`
	Domain         string               `json:"domain"`
	Images         map[string]string    `json:"images"`
	Infrastructure contract.Backing     `json:"infrastructure"`
	Platform       string               `json:"platform"`
	Repository     repository           `json:"repository"`
	Scale          string               `json:"scale"`
	StorageClass   string               `json:"storageClass"`

	Settings      json.RawMessage         `json:"settings,omitempty"`
	SMTP          *contract.SMTP          `json:"smtp,omitempty"`
	Observability *contract.Observability `json:"observability,omitempty"`
}

type applications struct {
	Namespace string `json:"namespace"`
	Project   string `json:"project"`
}

type component struct {
	Enabled   bool     `json:"enabled"`
	Images    []string `json:"images"`
	Namespace string   `json:"namespace"`
	Wave      int      `json:"wave"`
	// Values replace those of the app's chart.
	Values json.RawMessage `json:"values,omitempty"`
}

type repository struct {
	Path     string `json:"path,omitempty"` // of the tree in it; empty: its top
	Revision string `json:"revision"`
	URL      string `json:"url"`
}

// rootValues says which apps there are and what they get. Images are those of
// the apps that are on: a new digest elsewhere makes no new commit.
func rootValues(r *platform.Release, deployment string, in contract.TreeValues, from repository) (*values, error) {
	v := &values{
		Applications: applications{Namespace: r.Engine().Namespace, Project: r.GitOps.Project.Name},
		Components:   map[string]component{},
		Deployment:   deployment, Domain: in.Domain, Platform: r.Version, Scale: in.Scale,
		Images:         map[string]string{},
		StorageClass:   in.StorageClass,
		Repository:     from,
		Infrastructure: in.Backing,
		Settings:       in.Settings, SMTP: in.SMTP, Observability: in.Observability,
	}
	for _, comp := range r.Components {
		if comp.Kind != platform.App {
			continue
		}
		on := !slices.Contains(in.Disabled, comp.Name)
		images := comp.ImageNames()
		if images == nil {
			images = []string{}
		}
		v.Components[comp.Name] = component{Enabled: on, Images: images, Namespace: comp.Namespace, Wave: comp.Wave, Values: in.Values[comp.Name]}
		for _, name := range images {
			if !on {
				continue
			}
			ref := in.Images[name]
			if ref == "" {
				return nil, badTree(fmt.Errorf("component %s needs the image %s, which neither the bundle nor the registry has", comp.Name, name))
			}
			v.Images[name] = ref
		}
	}
	return v, nil
}
