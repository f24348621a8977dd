package platform

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/fault"
)

// The codes of this package's faults.
const (
	// CodeInvalid: `platform.yaml` has problems, all of which are listed with their lines, or
	// files of the release cannot be read, or are links or special files.
	CodeInvalid fault.Code = "PLT-001"
	// CodeMissing: there is no such release: no directory, none with a `platform.yaml`, or no
	// version of the reference platform.
	CodeMissing fault.Code = "PLT-002"
	// CodeUnfit: what the configuration says of the platform does not fit the release: its
	// components, their values, settings, secrets or the repository.
	CodeUnfit fault.Code = "PLT-003"
)

// checkTime is how long the check of a release may take. An ordinary one takes milliseconds, also
// on a busy machine.
const checkTime = 20 * time.Second

// Problem is one thing that is wrong with a release.
type Problem = document.Problem

// Invalid is every problem of a release, in the order of its lines.
type Invalid = document.Invalid

// Load reads and validates the release in fsys. All problems are reported at
// once, by a fault PLT-001 that wraps an *Invalid; a directory without
// platform.yaml is PLT-002.
func Load(fsys fs.FS) (*Release, error) {
	data, err := bounded.FS(fsys, File, bounded.Written)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &fault.Fault{
			Code: CodeMissing, Class: fault.Usage, Op: "read the platform release", Err: err,
			Fix: "set platform.release to a directory that holds " + File + ", then run the same command again",
		}
	case err != nil:
		return nil, unreadable(err)
	}
	doc, problems := document.Parse(data)
	if doc == nil {
		return nil, invalid(problems)
	}
	if version := doc.Text("apiVersion"); version != APIVersion && apiVersionRE.MatchString(version) { // it may mean other things by what it says
		return nil, invalid([]Problem{{Field: "apiVersion", Line: doc.Line("apiVersion"), Got: document.Quote(version), Want: APIVersion}})
	}
	r := &Release{files: fsys, document: doc}
	v := validator{r: r, fsys: fsys}
	most := bounded.Usual()
	most.Time = checkTime
	problems, err = bounded.Within(most, func() ([]Problem, error) { return r.read(problems, &v), nil })
	if err != nil {
		return nil, invalid([]Problem{{Got: "what cannot be read (" + err.Error() + ")", Want: "a release whose check ends"}})
	}
	if r.Settings != "" {
		if err = r.readSchema(fsys); err != nil {
			v.file("settings", r.Settings, err, "the path of a JSON schema, inside the release")
		}
	}
	if r.Guidance != "" {
		if r.guidance, err = bounded.ReadTemplate(fsys, r.Guidance, GuidanceData{Links: []GuidanceLink{{}}}); err != nil {
			v.file("guidance", r.Guidance, err, "the path of a text template, inside the release")
		}
	}
	if r.Approval != "" {
		if r.approval, err = bounded.ReadTemplate(fsys, r.Approval, ApprovalData{}); err != nil {
			v.file("approval", r.Approval, err, "the path of a text template, inside the release")
		}
	}
	problems = append(problems, v.List...)
	if len(problems) == 0 {
		return r, nil
	}
	return nil, invalid(doc.Merge(problems...))
}

// Open is Load for a release as its author has it. Links and other special files are PLT-001,
// as for Digest, and none is opened.
func Open(fsys fs.FS) (*Release, error) {
	if _, err := fs.Lstat(fsys, File); err == nil { // else it may be any directory
		if err := bounded.EachFile(fsys, func(string) error { return nil }); err != nil {
			return nil, unreadable(err)
		}
	}
	return Load(fsys)
}

// Digest is bounded.Digest of a release. Links and other special files are PLT-001.
func Digest(fsys fs.FS) (string, error) {
	digest, err := bounded.Digest(fsys)
	if err != nil {
		return "", unreadable(err)
	}
	return digest, nil
}

// read decodes the release's document and checks it. problems are those of its text; with those of
// its fields, they are what read returns.
func (r *Release) read(problems []Problem, v *validator) []Problem {
	_, more := r.document.Decode(r)
	for i := range r.Secrets {
		for j := range r.Secrets[i].Keys {
			if k := &r.Secrets[i].Keys[j]; k.Length == 0 && k.random() {
				k.Length = DefaultLength
			}
		}
	}
	v.release()
	return append(problems, more...)
}

// SetDefaults sets the defaults of GitOps.
func (g *GitOps) SetDefaults() { g.Tree, g.Project.Name = "gitops", "platform" }

// SetDefaults sets the defaults of the component.
func (c *Component) SetDefaults() { c.Enabled = true }

// SetDefaults sets the defaults of the secret.
func (s *Secret) SetDefaults() { s.Type = "Opaque" }

// SetDefaults sets the defaults of the check.
func (c *Check) SetDefaults() { c.Path, c.Status = "/", 200 }

// SetDefaults sets the default of the cluster.
func (c *Cluster) SetDefaults() { c.Name = "in-cluster" }

// SetDefaults sets the defaults of the gate.
func (a *Await) SetDefaults() { a.Deadline = config.Duration(5 * time.Minute) }

// SetDefaults sets the defaults of an HTTP gate.
func (g *HTTPGate) SetDefaults() { g.Path, g.Status = "/", 200 }

// SetDefaults sets the default of a condition gate.
func (g *ConditionGate) SetDefaults() { g.Status = "True" }

// Off returns the complete, sorted list of the components that are not installed: those
// that are off by default unless the user switched them on, and those that the user
// switched off. choices are the user's, by name. An unknown name, and a component that is off
// although it is required or another component needs it, are faults PLT-003.
func (r *Release) Off(choices map[string]bool) ([]string, error) {
	if err := r.checkNames(slices.Sorted(maps.Keys(choices))); err != nil {
		return nil, err
	}
	var off []string
	for _, c := range r.Components {
		on, chosen := choices[c.Name]
		if !chosen {
			on = c.Enabled
		}
		if !on {
			off = append(off, c.Name)
		}
	}
	slices.Sort(off)
	return off, errors.Join(r.checkRequired(off), r.checkNeeds(off))
}

// checkNeeds finds components that are off although others that are on need them.
func (r *Release) checkNeeds(off []string) error {
	var errs []error
	for _, c := range r.Components {
		for _, need := range c.Needs {
			if !slices.Contains(off, c.Name) && slices.Contains(off, need) {
				errs = append(errs, unfit("switch component "+need+" off", fmt.Errorf("%s needs it", c.Name),
					fmt.Sprintf("leave %s on, or set platform.components.%s.enabled to false too", need, c.Name)))
			}
		}
	}
	return errors.Join(errs...)
}

// Fits checks what the configuration says of the release's components, secrets and settings.
func (r *Release) Fits(cfg *config.Config) error {
	_, err := r.Off(cfg.Choices())
	return errors.Join(err, r.Overrides(cfg.Overrides()), r.CheckSettings(cfg.Platform.Settings),
		r.CheckGiven(slices.Collect(maps.Keys(cfg.Platform.Secrets))))
}

// Overrides checks that the user's values are for components that have a chart: those of
// kind chart or adopted, and apps.
func (r *Release) Overrides(values map[string]json.RawMessage) error {
	names := slices.Sorted(maps.Keys(values))
	if err := r.checkNames(names); err != nil {
		return err
	}
	for _, c := range r.Components {
		if _, given := values[c.Name]; given && !c.HasChart() && c.Kind != App {
			return unfit("give values to component "+c.Name, errors.New("it has no chart that takes values"),
				"remove platform.components."+c.Name+".values from the configuration")
		}
	}
	return nil
}

// On returns the components that are installed, sorted by wave and then in the order of
// the file. off is the complete list of those that are not (see Off).
func (r *Release) On(off []string) ([]Component, error) {
	if err := errors.Join(r.checkNames(off), r.checkRequired(off)); err != nil {
		return nil, err
	}
	var on []Component
	for _, c := range r.Components {
		if !slices.Contains(off, c.Name) {
			on = append(on, c)
		}
	}
	slices.SortStableFunc(on, func(a, b Component) int { return a.Wave - b.Wave })
	return on, nil
}

// Apps returns the expected set of Applications: the components of kind app among On.
func (r *Release) Apps(off []string) ([]Component, error) {
	on, err := r.On(off)
	return slices.DeleteFunc(on, func(c Component) bool { return c.Kind != App }), err
}

func (r *Release) checkNames(names []string) error {
	unknown := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return r.component(name) != nil })
	if len(unknown) == 0 {
		return nil
	}
	var known []string
	for _, c := range r.Components {
		known = append(known, c.Name)
	}
	slices.Sort(known)
	return unfit("choose components", fmt.Errorf("platform %s %s has no component %s", r.Name, r.Version, strings.Join(unknown, ", ")),
		"correct platform.components (there are: "+strings.Join(known, ", ")+"), then run the same command again")
}

func (r *Release) checkRequired(off []string) error {
	var names []string
	for _, c := range r.Components {
		if c.Required && slices.Contains(off, c.Name) {
			names = append(names, c.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return unfit("choose components", fmt.Errorf("platform %s %s cannot do without %s", r.Name, r.Version, strings.Join(names, ", ")),
		"remove it from platform.components, then run the same command again")
}

// unfit is the fault of a configuration that does not fit the release.
func unfit(op string, err error, fix string) error {
	return &fault.Fault{Code: CodeUnfit, Class: fault.Usage, Op: op, Err: err, Fix: fix}
}

func invalid(problems []Problem) error {
	return &fault.Fault{
		Code: CodeInvalid, Class: fault.Usage, Op: "read the platform release's " + File, Err: &Invalid{Problems: problems},
		Fix: "correct what is listed in " + File + ", then run the same command again",
	}
}

func unreadable(err error) error {
	return &fault.Fault{
		Code: CodeInvalid, Class: fault.Usage, Op: "read the platform release", Err: err,
		Fix: "make every file of the release a plain file that you can read, with a name that can be printed, then run the same command again",
	}
}
