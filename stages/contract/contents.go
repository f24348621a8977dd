package contract

import (
	"fmt"
	"io/fs"

	"github.com/slipway-sh/slipway/fault"
)

// CodeUnusable: what components of a platform release are made of cannot be used; each
// problem is named, with the component and the file.
const CodeUnusable fault.Code = "PLT-017"

// CodeNoImage: the platform release runs images that neither the bundle nor the registry has;
// each is named.
const CodeNoImage fault.Code = "IMG-001"

// NotKnown stands for what only a run finds out in what is shown before one.
const NotKnown = "known-when-installed"

// RenderInput is what a platform release is rendered from before a run, without a cluster: what
// the steps that render would work on, with something plausible, or NotKnown, in place of
// what only a run finds out. It does not cross to a container.
type RenderInput struct {
	Deployment string
	Kubernetes string           // version of the cluster: "1.37.2"
	APIs       []string         // that it has; nil: Helm's idea of one
	Guessed    bool             // that version is a guess: the cluster is not Slipway's own
	Known      bool             // a run had the release before: what its gates, links and checks ask is not looked for
	Manifests  fs.FS            // the bundle's, by project; nil where they are not at hand
	Components []ComponentInput // of those that are installed, but for apps
	Off        []ComponentInput // of those that are switched off, but for apps, and of tests and workloads for these
	Suites     []ComponentInput // of the tests and workloads for what is installed: see platform.Release.Part
	Apps       *TreeValues      // nil where the release has none
	// Elsewhere says that the tree of the apps is not that of the release.
	Elsewhere bool

	Fill     map[string]any // what the texts of ConfigMaps name
	Projects *ProjectsInput // nil where GitOps brings nothing about

	// What a rendering needs besides.
	Order       []string // components by name, as they are installed; all apps are at the end of their steps
	UserSecrets []string // secrets that the configuration gives, by the names that platform.GivenNames lists
	UserTLS     bool     // the certificate is the user's
}

// Contents is what is known of a platform release before it is installed.
type Contents struct {
	Images   []ImageUse // that the components and tests run; sorted, each once for a file
	Unread   []Unread   // components whose images cannot be found
	Policies []string   // components with NetworkPolicies, sorted
	Doubts   []Unread   // fields that are probably wrong, and that keep no component from being installed
	Rendered []Rendered // what an install applies
}

// ImageUse is an image that a component, a test or a workload runs.
type ImageUse struct {
	Component string
	File      string // of the release
	Image     string // a short name, or a reference as the object has it
	// Kept says that no step can put another reference in its place: somebody else than
	// Slipway applies the object.
	Kept bool
	Line int // in File; 0 if no line has the image as it is, as in a chart's template
}

// Unread is a component whose images cannot be found: because only a cluster says what they
// are or, where it has a file, because the release is wrong.
type Unread struct {
	Component string // empty: what Slipway makes before the components
	Err       error  // why
	File      string // of the release; empty if nothing is wrong with it
	Line      int    // in File; 0 if it is not known
}

// Wrong reports whether the release is wrong: no cluster would mend it.
func (u Unread) Wrong() bool { return u.File != "" }

// Position is where the release is wrong: "web/web.yaml, line 3".
func (u Unread) Position() string { return Position(u.File, u.Line) }

// Position names a line of a file of a release; 0 if the line is not known.
func Position(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s, line %d", file, line)
}

// Rendered is what a file of a release brings into the cluster.
type Rendered struct {
	Component string           // empty: what Slipway makes before, or for, the components
	Kind      string           // of the component; else what it is: "namespaces"
	File      string           // of the release
	Namespace string           // of objects that name none, where their kind has namespaces
	Objects   []map[string]any // in the order in which they are applied; Secrets without values
	Err       error            // why there are no objects
	Wrong     bool             // Err is about the release; else only a cluster knows the objects
}
