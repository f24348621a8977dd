package main

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/oci"
	"github.com/slipway-sh/slipway/ci/dev/bundle/rootfs"
	"github.com/slipway-sh/slipway/containers/lock"
)

// The names of programs and layers that the build itself uses.
const (
	slipway      = "slipway"
	slipwayNode  = "slipway-node"
	gitLayer     = "git"
	seccompLayer = "seccomp" // with the library that runc is linked with
)

//go:embed recipes.yaml
var recipesText []byte

//go:embed *.sh
var scripts embed.FS

type recipes struct {
	Perl     []string               `json:"perl"`
	Commands []commandRecipe        `json:"commands"`
	Layers   []layerRecipe          `json:"layers"`
	Files    map[string]fileRecipe  `json:"files"`
	Images   map[string]imageRecipe `json:"images"`
}

type commandRecipe struct {
	Name      string          `json:"name"`
	Module    string          `json:"module"`    // a folder in tools, or one of the repository, with a slash
	Package   string          `json:"package"`   // import path
	VersionOf string          `json:"versionOf"` // image or tool of the lock; empty: Name
	Set       []string        `json:"set"`       // variables for the linker: NAME=VALUE
	Tags      []string        `json:"tags"`
	CGO       bool            `json:"cgo"`
	Sources   []string        `json:"sources"` // files of the module that count, or folders, with a slash; empty: all
	Instead   *gotool.Instead `json:"instead"`
}

type layerRecipe struct {
	rootfs.Addition        // with its packages besides those of the image with its name
	Below           string `json:"below"` // the layer that it is on
	User            *struct {
		Name string `json:"name"`
		ID   int    `json:"id"` // of the user, and of the group of that name
		Home string `json:"home"`
	} `json:"user"` // is made before
	Perl bool `json:"perl"` // it leaves out Perl's library, too
}

// imageRecipe is an image: a Debian layer, a layer of files, and how it is started.
type imageRecipe struct {
	oci.Config
	Layer    string            `json:"layer"`    // Debian layer; empty for an image of files alone
	Programs map[string]string `json:"programs"` // path by command
	Files    []fileRecipe      `json:"files"`
	With     []string          `json:"with"`   // names of shared files
	Module   string            `json:"module"` // Go module that has sources and trees, in the tools of the image's name
	Trees    map[string]string `json:"trees"`  // path in the image by folder of the module
}

type fileRecipe struct {
	Path   string  `json:"path"`
	Mode   string  `json:"mode"`  // octal
	Owner  [2]int  `json:"owner"` // user and group
	Dir    bool    `json:"dir"`
	Link   string  `json:"link"`   // what it leads to
	Data   *string `json:"data"`   // content
	Layer  string  `json:"layer"`  // Debian layer that has the file
	Append string  `json:"append"` // what comes after what the layer has
	Source string  `json:"source"` // path in the image's module
	Script string  `json:"script"` // a file beside this program
}

func loadRecipes() (r recipes, err error) {
	if err := yaml.UnmarshalStrict(recipesText, &r); err != nil {
		return r, fmt.Errorf("read recipes.yaml: %w", err)
	}
	return r, nil
}

// commands lists the Go commands in the order in which they are built. source is the repository's
// root; versions come from the lock; arch is what they are for; without names what is left out.
// digest is that of slipway's sources.
func (r recipes) commands(ctx context.Context, source string, l *lock.Lock, arch string, without []string) (all []gotool.Command, digest string, err error) {
	version := l.Versions()
	for _, i := range l.Images {
		version[i.Name] = i.Version
	}
	for _, c := range r.Commands {
		if !slices.Contains(without, c.Name) {
			all = append(all, c.command(source, version, arch))
		}
	}
	if !slices.Contains(without, slipway) {
		var own func(path string) bool
		if own, digest, err = gotool.Sources(ctx, source); err != nil {
			return nil, "", err
		}
		all = append(all, gotool.Command{Name: slipway, Module: source, Package: ".", LDFlags: []string{"-w", "-X", "main.source=" + digest}, Sources: own})
	}
	if arch != runtime.GOARCH {
		for i := range all {
			all[i].System, all[i].CC = "linux/"+arch, targets()[arch].compiler()
		}
	}
	return all, digest, nil
}

func (r commandRecipe) command(source string, version map[string]string, arch string) gotool.Command {
	if r.Name == gotool.Runc {
		return gotool.BuildRunc(source, "", "", string(targets()[arch])) // its library comes when the Debian layers are there
	}
	module := filepath.Join(source, r.Module)
	if !strings.Contains(r.Module, "/") {
		module = toolsOf(source, r.Module)
	}
	c := gotool.Command{
		Name: r.Name, Module: module, Package: r.Package, Tags: r.Tags, CGO: r.CGO, Instead: r.Instead,
		LDFlags: []string{"-w"}, // the symbol table stays: by it `make scan` knows which functions a program has
	}
	of := version[r.Name]
	if r.VersionOf != "" {
		of = version[r.VersionOf]
	}
	numbers := append(strings.Split(of, "."), "", "")
	filled := strings.NewReplacer("{version}", of, "{major}", numbers[0], "{minor}", numbers[1])
	for _, variable := range r.Set {
		c.LDFlags = append(c.LDFlags, "-X", filled.Replace(variable))
	}
	if len(r.Sources) > 0 {
		c.Sources = func(path string) bool {
			return slices.ContainsFunc(r.Sources, func(s string) bool { return path == s || strings.HasSuffix(s, "/") && strings.HasPrefix(path, s) })
		}
	}
	return c
}

func toolsOf(source, name string) string { return filepath.Join(source, "ci/dev/bundle/tools", name) }

type addition struct {
	rootfs.Addition
	on string
}

// additions are the Debian layers on the base that the lock's images need.
func (r recipes) additions(l *lock.Lock) (all []addition) {
	packages := map[string][]string{}
	for _, layer := range r.Layers {
		packages[layer.Name] = layer.Packages
		if image, there := l.Image(layer.Name); there {
			packages[layer.Name] = slices.DeleteFunc(slices.Clone(image.Debian), func(p string) bool {
				return layer.Below == gitLayer && slices.Contains(packages[gitLayer], p)
			})
		} else if len(layer.Packages) == 0 {
			continue // the image is not in the bundle
		}
		layer.Packages, layer.Before, layer.Trim = packages[layer.Name], layer.makeUser()+layer.Before, r.trim(layer)
		all = append(all, addition{on: layer.Below, Addition: layer.Addition})
	}
	return all
}

func (r recipes) trim(layer layerRecipe) []string {
	if layer.Perl {
		return slices.Concat(layer.Trim, r.Perl)
	}
	return layer.Trim
}

func (r layerRecipe) makeUser() string {
	if r.User == nil {
		return ""
	}
	return fmt.Sprintf("groupadd --gid %d %s\nuseradd --uid %d --gid %d --home-dir %s --shell /usr/sbin/nologin %s\n",
		r.User.ID, r.User.Name, r.User.ID, r.User.ID, r.User.Home, r.User.Name)
}

// definition is an image whose files are there.
type definition struct {
	debian string // the layer it stands on; empty for an image of files alone
	config oci.Config
	files  []oci.File
	trees  []oci.Tree
	// treesVersion stands for the trees' content, which is not read to find out
	// whether it changed.
	treesVersion string
}

// define describes an image, once all commands and Debian layers are built.
func (b *builder) define(ctx context.Context, image lock.Image) (d definition, err error) {
	r, ok := b.recipes.Images[image.Name]
	if !ok {
		return d, fmt.Errorf("the lock lists the image %s, which nothing builds", image.Name)
	}
	d = definition{debian: r.Layer, config: r.Config}
	d.config.Arch = b.arch
	for _, command := range sortedNames(r.Programs) {
		d.files = append(d.files, oci.File{Path: r.Programs[command], Mode: 0o755, Source: b.built[command]})
		if len(r.Programs) == 1 && r.Entrypoint == nil {
			d.config.Entrypoint = []string{"/" + r.Programs[command]}
		}
	}
	module := ""
	if r.Module != "" {
		if module, err = gotool.ModuleDir(ctx, toolsOf(b.source, image.Name), r.Module); err != nil {
			return d, err
		}
	}
	for _, name := range r.With {
		r.Files = append(r.Files, b.recipes.Files[name])
	}
	for _, f := range r.Files {
		file, err := b.file(f, module)
		if err != nil {
			return d, fmt.Errorf("the file %s of the image %s: %w", f.Path, image.Name, err)
		}
		d.files = append(d.files, file)
	}
	for _, from := range sortedNames(r.Trees) {
		d.trees, d.treesVersion = append(d.trees, oci.Tree{Root: filepath.Join(module, from), Into: r.Trees[from], Owner: &oci.Owner{}}), image.Modules[0].Origin()
	}
	if image.Name == "busybox" {
		links, err := applets(ctx, d.files[0].Source)
		d.files = append(d.files, links...)
		return d, err
	}
	return d, nil
}

// file is a file of an image whose Go module is in the folder module.
func (b *builder) file(r fileRecipe, module string) (oci.File, error) {
	f := oci.File{Path: r.Path, Owner: oci.Owner{UID: r.Owner[0], GID: r.Owner[1]}, Dir: r.Dir, Link: r.Link}
	if r.Mode != "" {
		bits, err := strconv.ParseUint(r.Mode, 8, 32)
		if err != nil {
			return f, err
		}
		if f.Mode = fs.FileMode(bits & 0o777); bits&0o1000 != 0 {
			f.Mode |= fs.ModeSticky
		}
	}
	switch {
	case r.Data != nil:
		f.Data = []byte(*r.Data)
	case r.Script != "":
		var err error
		f.Data, err = scripts.ReadFile(r.Script)
		return f, err
	case r.Source != "":
		f.Source = filepath.Join(module, r.Source)
	case r.Append != "":
		below, err := os.ReadFile(b.layers[r.Layer].Lookup(r.Path))
		f.Data = append(below, r.Append...)
		return f, err
	case r.Layer != "":
		f.Source = b.layers[r.Layer].File(r.Path)
		if _, err := os.Stat(f.Source); err != nil { // where /bin is a link to usr/bin
			f.Source = b.layers[r.Layer].File("usr/" + r.Path)
		}
	}
	return f, nil
}

// applets are a link for each command of a busybox.
func applets(ctx context.Context, program string) (links []oci.File, err error) {
	list, err := exec.CommandContext(ctx, program, "--list").Output()
	if err != nil {
		return nil, fmt.Errorf("list the commands of busybox: %w", err)
	}
	for name := range strings.FieldsSeq(string(list)) {
		if name != "busybox" {
			links = append(links, oci.File{Path: "bin/" + name, Link: "busybox"})
		}
	}
	return links, nil
}

func (b *builder) image(ctx context.Context, name string, d definition) (v1.Image, error) {
	var layers []v1.Layer
	if d.debian != "" {
		for _, l := range b.layers[d.debian].Stack() {
			layers = append(layers, l.Layer)
		}
	}
	if len(d.files)+len(d.trees) > 0 {
		layer, err := b.fileLayer(ctx, name, d)
		if err != nil {
			return nil, err
		}
		layers = append(layers, layer)
	}
	image, err := oci.NewImage(d.config, layers...)
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return image, nil
}

// fileLayer is an image's layer of own files. Files of the store and of modules
// never change under their names, so they are not read to find out whether the
// layer is there.
func (b *builder) fileLayer(ctx context.Context, name string, d definition) (v1.Layer, error) {
	in := build.NewInputs("bundle-files-"+name).
		String("layer", fmt.Sprint(oci.Epoch, oci.Level)).
		String("trees", d.treesVersion)
	for _, t := range d.trees {
		in.String("tree", t.Into)
	}
	for _, f := range d.files {
		source := f.Source
		if inStore, ok := strings.CutPrefix(source, b.store.Path()+"/"); ok {
			source = inStore
		} else if source != "" {
			content, err := os.ReadFile(source)
			if err != nil {
				return nil, fmt.Errorf("image %s: %w", name, err)
			}
			source = string(content)
		}
		in.Strings("file", []string{f.Path, f.Mode.String(), fmt.Sprint(f.Owner, f.Dir), source, string(f.Data), f.Link})
	}
	dir, _, err := b.store.Do(ctx, in.Key(), func(ctx context.Context, dir string) error {
		_, err := oci.WriteLayer(ctx, dir, d.trees, d.files)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	return oci.OpenLayer(dir)
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
