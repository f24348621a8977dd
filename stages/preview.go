package stages

import (
	"cmp"
	"slices"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/conductor"
	"github.com/slipway-sh/slipway/stages/contract"
)

// Preview is what an install would hand to the steps that render, as far as it is known
// before one. Nothing is started for it.
func Preview(in contract.Inputs) (contract.RenderInput, error) {
	s, _, err := preview(in, contract.Infrastructure{StorageClass: "standard"})
	for i := range s.Components {
		s.Components[i].Rewrite = nil // what the objects name is asked for
	}
	return s, err
}

func preview(in contract.Inputs, found contract.Infrastructure) (contract.RenderInput, *platformWiring, error) {
	off, err := in.Release.Off(in.Config.Choices())
	if err != nil {
		return contract.RenderInput{}, nil, err
	}
	w := &platformWiring{
		Graph: &conductor.Graph{Inputs: in}, disabled: off,
		site: infrastructure{found: func() contract.Infrastructure { return found }},
	}
	out := contract.RenderInput{Deployment: in.Config.Global.Name, Elsewhere: in.Config.Git.URL != "", Guessed: !in.Site.OwnsNodes()}
	var holes []string
	for _, m := range in.Release.ConfigMaps {
		holes = append(holes, m.Holes()...)
	}
	out.Fill = w.fill(holes)
	for _, c := range in.Release.Components {
		switch {
		case slices.Contains(off, c.Name) && c.Kind != platform.App:
			out.Off = append(out.Off, w.input(c))
		case slices.Contains(off, c.Name):
		case c.Kind == platform.App:
			if out.Apps == nil {
				values := w.treeValues()
				out.Apps = &values
			}
		default:
			out.Components = append(out.Components, w.input(c))
		}
	}
	suites, unused := in.Release.Parts(off)
	for _, c := range suites {
		out.Suites = append(out.Suites, w.input(c))
	}
	for _, c := range unused {
		out.Off = append(out.Off, w.input(c))
	}
	others := slices.ContainsFunc(in.Release.Components, func(c platform.Component) bool {
		return (c.Kind == platform.AppSet || c.Kind == platform.Adopted) && !slices.Contains(off, c.Name)
	})
	if out.Apps != nil || others {
		out.Projects = w.projectsInput()
	}
	return out, w, nil
}

// Rendering is Preview with all that an install applies, on an infrastructure that Terraform has
// found. Nil: contract.NotKnown stands for what only a run finds out.
func Rendering(in contract.Inputs, found *contract.Infrastructure) (contract.RenderInput, error) {
	if found == nil {
		found = &contract.Infrastructure{
			StorageClass: contract.NotKnown,
			Backing: contract.Backing{
				ClusterName: contract.NotKnown, LoadBalancer: contract.LoadBalancer{Kind: contract.NotKnown},
				ObjectStore: contract.ObjectStore{Kind: contract.NotKnown}, Database: contract.Database{Kind: contract.NotKnown},
			},
		}
	}
	out, w, err := preview(in, *found)
	if err != nil {
		return out, err
	}
	out.Order, err = w.order()
	out.UserSecrets, out.UserTLS = w.UserSecrets, w.Config.TLS.Mode == config.UserCertificate
	return out, err
}

// order names the components in the order of their steps.
func (w *platformWiring) order() ([]string, error) {
	nodes, err := conductor.Nodes(Install(), w.Inputs)
	if err != nil {
		return nil, err
	}
	apps, err := w.Release.Apps(w.disabled)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(apps, func(a, b platform.Component) int { return cmp.Compare(a.Wave, b.Wave) })
	var out []string
	for _, n := range nodes {
		if n.Key == contract.SyncStep().Key {
			for _, a := range apps {
				out = append(out, a.Name)
			}
		}
		// The step that hands a component over has its name, too.
		if _, ok := w.Release.Component(n.Key.Name); ok && contract.OfComponents(n.Key.Stage) && !slices.Contains(out, n.Key.Name) {
			out = append(out, n.Key.Name)
		}
	}
	return out, nil
}

// projectsInput is what the projects of the apps are made from, as far as a plan knows.
func (w *platformWiring) projectsInput() *contract.ProjectsInput {
	var out contract.ProjectsInput
	if c := w.Release.GitOps.Cluster; c != nil {
		out.Fill = w.fill(c.Holes())
	}
	out.Namespace = w.Release.Engine().Namespace
	if from := w.Config.Git; from.URL != "" {
		out.Repository, out.Target, out.Path = from.URL, from.Revision, from.Path
		return &out
	}
	git := contract.Git{ClusterURL: "https://" + contract.NotKnown}
	if s := w.Release.GitServer(); s != nil {
		git.Repository = s.Repository
	}
	out.Repository, out.Target = git.CloneURL(git.Repository), contract.Branch
	return &out
}
