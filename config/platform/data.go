package platform

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kubernetes "sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/bounded"
	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/document"
	"github.com/slipway-sh/slipway/imageref"
)

// DefaultRetain is how many backups are kept unless a release says otherwise.
const DefaultRetain = 3

// Data is what an upgrade must not lose. Before one, it is backed up, and the backup is
// proved by restoring it.
type Data struct {
	Name      string   `json:"name" is:"name"`               // name of the data: lower-case letters, digits and hyphens
	Component string   `json:"component" is:"component"`     // component with the data; Slipway backs the data up if the component is on
	Pod       string   `json:"pod"`                          // file with one Pod in which the commands run; it names images as manifests do, and may have names in braces
	Scratch   string   `json:"scratch"`                      // file with one Pod with its own empty store, in which a backup is restored to prove it
	Dump      []string `json:"dump"`                         // command that writes the data to standard output
	Restore   []string `json:"restore"`                      // command that replaces the data with standard input, completely or not at all
	Check     []string `json:"check"`                        // command that succeeds if the data is complete, and prints one line about it; standard input has the line for the backup, or nothing when the backup itself is checked
	Users     []string `json:"users,omitempty" is:"user"`    // workloads that use the data, "Deployment shop/web"; they stop while a rollback restores a backup and, with style in-place, during migrations
	Retain    int      `json:"retain,omitempty" is:"retain"` // number of backups to keep, 1 to 100; default 3

	pod, scratch json.RawMessage // the Pods of these files
}

// SetDefaults sets the default of the data.
func (d *Data) SetDefaults() { d.Retain = DefaultRetain }

// Pods are the Pod in which the commands run and the one with a store of its own, JSON, as
// their files have them.
func (d Data) Pods() (live, scratch json.RawMessage) { return d.pod, d.scratch }

// When is a moment of an upgrade.
type When string

// The moments at which migrations run.
const (
	Before When = "before" // before the components are brought to the release
	After  When = "after"  // after that
)

// Migration changes data when a release older than Version is upgraded. It runs in the
// data's pod, may run again at any moment, and so may what undoes it.
type Migration struct {
	Name    string   `json:"name" is:"name"`       // name of the migration: lower-case letters, digits and hyphens
	Version string   `json:"version" is:"version"` // first release that needs it
	Data    string   `json:"data"`                 // data that it changes
	When    When     `json:"when"`                 // before or after the components are upgraded
	Command []string `json:"command"`              // command that migrates
	Undo    []string `json:"undo,omitempty"`       // command that reverts the migration without loss; without it, a rollback restores the backup
}

// DataNamed returns the data of a name.
func (r *Release) DataNamed(name string) (Data, bool) {
	i := slices.IndexFunc(r.Data, func(d Data) bool { return d.Name == name })
	if i < 0 {
		return Data{}, false
	}
	return r.Data[i], true
}

// DataOn are the data of the components that are not off.
func (r *Release) DataOn(off []string) []string {
	var out []string
	for _, d := range r.Data {
		if !slices.Contains(off, d.Component) {
			out = append(out, d.Name)
		}
	}
	return out
}

// MigrationsFrom are the migrations that an upgrade from a version carries out at a moment,
// of these data.
func (r *Release) MigrationsFrom(version string, when When, data []string) []Migration {
	var out []Migration
	for _, m := range r.Migrations {
		if m.When == when && Older(version, m.Version) && slices.Contains(data, m.Data) {
			out = append(out, m)
		}
	}
	return out
}

// Retain is how many backups are kept: as many as the data that wants the most.
func (r *Release) Retain() int {
	n := 0
	for _, d := range r.Data {
		n = max(n, d.Retain)
	}
	if n == 0 {
		return DefaultRetain
	}
	return n
}

// User is a workload that uses data, and can be stopped.
type User struct{ Kind, Namespace, Name string }

// String is "Deployment shop/web".
func (w User) String() string { return w.Kind + " " + w.Namespace + "/" + w.Name }

// ParseUser reads "Deployment shop/web".
func ParseUser(s string) (User, error) {
	m := workloadRE.FindStringSubmatch(s)
	if m == nil {
		return User{}, fmt.Errorf("workload %s: want Deployment or StatefulSet namespace/name", document.Quote(s))
	}
	return User{m[1], m[2], m[3]}, nil
}

var workloadRE = regexp.MustCompile(`^(Deployment|StatefulSet) ([a-z0-9][a-z0-9-]*)/([a-z0-9][a-z0-9.-]*)$`)

// maxRetain is how many backups may be kept.
const maxRetain = 100

func (v *validator) data() {
	for i := range v.r.Data {
		d, field := &v.r.Data[i], fmt.Sprintf("data[%d]", i)
		if v.r.component("backup-"+d.Name) != nil {
			v.Add(field+".name", document.Quote(d.Name)+", and there is a component backup-"+d.Name, "another name, or another one of the component")
		}
		d.pod = v.pod(field+".pod", d.Pod, d.Component)
		d.scratch = v.pod(field+".scratch", d.Scratch, d.Component)
		v.command(field+".dump", d.Dump)
		v.command(field+".restore", d.Restore)
		v.command(field+".check", d.Check)
		for j, user := range d.Users {
			if w, err := ParseUser(user); err == nil {
				v.namespace(fmt.Sprintf("%s.users[%d]", field, j), w.Namespace)
			}
		}
	}
}

func (v *validator) migrations() {
	for i, m := range v.r.Migrations {
		field := fmt.Sprintf("migrations[%d]", i)
		if Older(v.r.Version, m.Version) {
			v.Add(field+".version", document.Quote(m.Version), v.r.Version+" or a version before it")
		}
		if _, ok := v.r.DataNamed(m.Data); !ok {
			v.Add(field+".data", document.Shown(m.Data), "the name of an entry of data in this file")
		}
		v.command(field+".command", m.Command)
		if m.Undo != nil {
			v.command(field+".undo", m.Undo)
		}
	}
}

func (v *validator) command(field string, words []string) {
	if len(words) == 0 || words[0] == "" {
		v.Add(field, "nothing", `a command such as [sh, -c, "…"]`)
	}
}

// pod checks a file with one Pod of a component, and returns that as JSON; nil if there is
// none.
func (v *validator) pod(field, name, component string) json.RawMessage {
	const want = "a file with one Pod, of the release, as a relative path"
	if name == "" {
		v.Add(field, "nothing", want)
		return nil
	}
	if info := v.stat(field, name, want); info == nil {
		return nil
	} else if info.IsDir() {
		v.Add(field, document.Quote(name)+", which is a directory", want)
		return nil
	}
	pod, text, err := readPod(v.fsys, name)
	if err != nil {
		v.Add(field, document.Quote(name)+" ("+err.Error()+")", want)
		return nil
	}
	v.namespace(field, pod.Metadata.Namespace)
	config.EachText(text, "", func(_, _, text string) { v.filled(field, text) })
	c := v.r.component(component)
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c != nil && !c.runs(container.Image) {
			v.Add(field, "the image "+document.Quote(container.Image)+" in "+name, "an image that the component "+component+" names under images")
		}
	}
	return text
}

// pod is what is read of a Pod.
type pod struct {
	APIVersion string                     `json:"apiVersion"`
	Kind       string                     `json:"kind"`
	Metadata   struct{ Namespace string } `json:"metadata"`
	Spec       struct {
		InitContainers []podContainer `json:"initContainers"`
		Containers     []podContainer `json:"containers"`
	} `json:"spec"`
}

type podContainer struct {
	Image string `json:"image"`
}

func readPod(fsys fs.FS, name string) (p pod, text json.RawMessage, err error) {
	data, err := bounded.FS(fsys, name, bounded.Written)
	if err != nil {
		return p, nil, errors.New("it cannot be read")
	}
	var doc, second yaml.Node
	docs := yaml.NewDecoder(bytes.NewReader(data))
	if err := docs.Decode(&doc); err != nil {
		return p, nil, fmt.Errorf("it is no YAML: %s", strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
	}
	if err := docs.Decode(&second); !errors.Is(err, io.EOF) {
		return p, nil, errors.New("it holds more than one object")
	}
	if err = document.CheckAliases(data); err == nil {
		text, err = kubernetes.YAMLToJSONStrict(data)
	}
	if err == nil {
		err = json.Unmarshal(text, &p)
	}
	switch {
	case err != nil:
		return p, nil, errors.New("it is no Pod: " + err.Error())
	case p.APIVersion != "v1" || p.Kind != "Pod":
		return p, nil, fmt.Errorf("it is of kind %s %s", document.Quote(p.APIVersion), document.Quote(p.Kind))
	case len(p.Spec.Containers) == 0:
		return p, nil, errors.New("the Pod has no container")
	}
	return p, text, nil
}

// runs reports whether the component names an image under images, as a Pod names it: by the
// short name, by a text in braces, or by the reference.
func (c *Component) runs(image string) bool {
	if hole, ok := strings.CutPrefix(image, "{"); ok {
		short, is := ImageHole(strings.TrimSuffix(hole, "}"))
		return is && slices.Contains(c.Images, short)
	}
	if imageref.IsShort(image) {
		return slices.Contains(c.Images, image)
	}
	normal, err := imageref.Normal(image)
	return err == nil && slices.Contains(c.ImageReferences(), normal)
}
