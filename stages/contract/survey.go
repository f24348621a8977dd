package contract

import "io/fs"

// NotKnown stands for what only a run finds out in what is shown before one.
const NotKnown = "known-when-installed"

// Survey is what a platform release is rendered from before a run, without a cluster: what
// the steps that render would work on, with something plausible, or NotKnown, in place of
// what only a run finds out. It does not cross to a container.
type Survey struct {
	Deployment string
	Kubernetes string           // version of the cluster: "1.35.4"
	Manifests  fs.FS            // the bundle's, by project; nil where they are not at hand
	Components []ComponentInput // of those that are installed, but for apps
	Apps       *TreeValues      // nil where the release has none
	// Elsewhere says that the tree of the apps is not that of the release.
	Elsewhere bool

	// What a rendering needs besides.
	Order       []string       // components by name, as they are installed; all apps are at the end of their steps
	Fill        map[string]any // what the texts of ConfigMaps name
	UserSecrets []string       // secrets that the configuration gives, by the names that platform.GivenNames lists
	UserTLS     bool           // the certificate is the user's
	Projects    *ProjectsInput // nil where GitOps brings nothing about
}

// ImageUse is an image that a component runs.
type ImageUse struct {
	Component string
	File      string // of the release
	Image     string // a short name, or a reference as the object has it
	// Kept says that no step can put another reference in its place: somebody else than
	// Slipway applies the object.
	Kept bool
}

// Unread is a component whose images cannot be found without a cluster.
type Unread struct {
	Component string
	Err       error // why
}

// Rendered is what a file of a release brings into the cluster.
type Rendered struct {
	Component string           // empty: what Slipway makes before, or for, the components
	Kind      string           // of the component; else what it is: "namespaces"
	File      string           // of the release
	Objects   []map[string]any // in the order in which they are applied; Secrets without values
	Err       error            // why there are no objects: they are not known without a cluster
}
