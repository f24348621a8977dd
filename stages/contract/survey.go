package contract

import "io/fs"

// Survey is what the images of a platform release are found from before a run, without a
// cluster: what the steps that render would work on, with plausible values in place of
// what only a run finds out. It does not cross to a container.
type Survey struct {
	Deployment string
	Kubernetes string           // version of the cluster: "1.35.4"
	Manifests  fs.FS            // the bundle's, by project; nil where they are not at hand
	Components []ComponentInput // of those that are installed, but for apps
	Apps       *TreeValues      // nil where the release has none
	// Elsewhere says that the tree of the apps is not that of the release.
	Elsewhere bool
}

// ImageUse is an image that a component runs.
type ImageUse struct {
	Component string
	File      string // of the release
	Image     string // a short name, or a reference as the object has it
}

// Unread is a component whose images cannot be found without a cluster.
type Unread struct {
	Component string
	Err       error // why
}
