package main

import (
	"context"
	"debug/buildinfo"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/slipway-sh/slipway/ci/dev/build"
	"github.com/slipway-sh/slipway/ci/dev/build/gotool"
	"github.com/slipway-sh/slipway/ci/dev/build/oci"
	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/containers/sbom"
	"github.com/slipway-sh/slipway/containers/trust"
	"github.com/slipway-sh/slipway/imageref"
)

type part struct {
	bundle.File
	source string // a file of the store or of a module
	mode   os.FileMode
	images []oci.Named // of an archive
}

// content lists the files and images of the bundle, without sums.
func (b *builder) content(ctx context.Context, without []string) ([]part, []bundle.Image, error) {
	var parts []part
	for _, t := range b.lock.Tools {
		parts = append(parts, part{source: b.built[t.Name], mode: 0o755, File: bundle.File{
			Path: "bin/" + t.Name, Name: t.Name, Kind: bundle.Tool, Version: t.Version, Origin: t.Modules[0].Origin(),
		}})
	}
	if !slices.Contains(without, slipway) {
		parts = append(parts, part{source: b.built[slipway], mode: 0o755, File: bundle.File{
			Path: "bin/" + slipway, Name: slipway, Kind: bundle.Tool, Version: "source", Origin: "source:" + b.sources,
		}})
	}
	made, err := b.images(ctx)
	if err != nil {
		return nil, nil, err
	}
	archives := map[string]*part{}
	for _, archive := range []string{"toolchain", "node", "workloads"} {
		archives[archive] = &part{mode: 0o644, File: bundle.File{
			Path: "images/" + archive + ".tar", Name: archive, Kind: bundle.Images, Origin: "images", Version: b.lock.Suite,
		}}
	}
	var images []bundle.Image
	for _, i := range b.lock.Images {
		named := oci.Named{Ref: bundle.Host + "/" + i.Name + ":" + i.Version, Image: made[i.Name]}
		digest, err := named.Image.Digest()
		if err != nil {
			return nil, nil, fmt.Errorf("image %s: %w", i.Name, err)
		}
		images = append(images, bundle.Image{Name: i.Name, Ref: named.Ref, Digest: digest.String(), StandsFor: i.StandsFor})
		archive := archives["workloads"]
		if !i.Workload {
			archive = archives[i.Name]
			archive.Version = i.Version
		}
		archive.images = append(archive.images, named)
	}
	for _, name := range sortedNames(archives) {
		parts = append(parts, *archives[name])
	}
	for _, m := range b.lock.Manifests {
		dir, err := gotool.ModuleDir(ctx, toolsOf(b.source, m.Name), m.Modules[0].Path)
		if err != nil {
			return nil, nil, err
		}
		for _, file := range sortedNames(m.Files) {
			source := filepath.Join(dir, filepath.FromSlash(file))
			text, err := os.ReadFile(source)
			if err == nil {
				err = b.stoodFor(text)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("manifest %s: %w", m.Name, err)
			}
			parts = append(parts, part{source: source, mode: 0o644, File: bundle.File{
				Path: m.Place(file), Name: m.Name, Kind: bundle.Manifest,
				Version: m.Version, Origin: m.Modules[0].Origin() + "#" + file, SHA256: m.Files[file],
			}})
		}
	}
	return parts, images, nil
}

var imageLine = regexp.MustCompile(`(?m)^\s*(?:- )?image: *"?([^\s"]+)`)

// stoodFor fails if a manifest names an image that none of the lock stands for.
func (b *builder) stoodFor(manifest []byte) error {
	var problems []error
	for _, m := range imageLine.FindAllSubmatch(manifest, -1) {
		ref, err := imageref.Normal(string(m[1]))
		if err == nil && !slices.ContainsFunc(b.lock.Images, func(i lock.Image) bool { return slices.Contains(i.StandsFor, ref) }) {
			err = fmt.Errorf("it names %s, which is in standsFor of no image of lock.yaml", ref)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// indexKey is the digest of everything that the index depends on: the store's keys of programs and
// layers, the digests of images, and the lock.
func (b *builder) indexKey(parts []part, images []bundle.Image) (build.Key, error) {
	pins, err := b.lock.Digest() // with digests of packages, which the documents have
	if err != nil {
		return build.Key{}, err
	}
	in := build.NewInputs("bundle-index").String("platform", "linux/"+b.arch).String("documents", "2").String("lock", pins)
	for _, p := range parts {
		source, err := filepath.Rel(b.store.Path(), p.source)
		if err != nil || p.Kind != bundle.Tool {
			source = ""
		}
		in.Strings("file", []string{p.Path, p.Version, p.Origin, p.SHA256, source})
	}
	for _, i := range images {
		in.Strings("image", append([]string{i.Name, i.Ref, i.Digest}, i.StandsFor...))
	}
	return in.Key(), nil
}

// place puts the bundle below the store. It returns the bundle's folder, which has the digest of the
// built index as its name, and the digest that vouches for the bundle: a different one if the user
// added images. A bundle for this machine also gets the link "current". An existing folder is not
// changed: commands compare a bundle with its index before they use it.
func (b *builder) place(ctx context.Context, parts []part, images []bundle.Image) (dir, digest string, hit bool, err error) {
	root := filepath.Join(b.store.Path(), "bundle")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return "", "", false, err
	}
	release, err := b.store.Lock(ctx, build.Key{Name: "bundle"})
	if err != nil {
		return "", "", false, err
	}
	defer release()
	key, err := b.indexKey(parts, images)
	if err != nil {
		return "", "", false, err
	}
	fresh := "" // a bundle that is made anew and not yet in its place
	defer func() { _ = os.RemoveAll(fresh) }()
	memo, known, err := b.store.Do(ctx, key, func(ctx context.Context, memo string) error {
		if fresh, err = b.assemble(ctx, root, parts, images); err != nil {
			return err
		}
		return build.CopyFile(filepath.Join(memo, bundle.IndexFile), filepath.Join(fresh, bundle.IndexFile), 0o644)
	})
	if err != nil {
		return "", "", false, err
	}
	built, err := bundle.Read(memo)
	if err != nil {
		return "", "", false, err
	}
	digest = built.ReadDigest()
	dir = filepath.Join(root, digest[len("sha256:"):])
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if known = false; fresh == "" {
			if fresh, err = b.assemble(ctx, root, parts, images); err != nil {
				return "", "", false, err
			}
		}
		if err := os.Rename(fresh, dir); err != nil {
			return "", "", false, err
		}
	}
	if has, err := bundle.Read(dir); err == nil {
		made, err := b.added.Made(digest, has.ReadDigest())
		if err != nil {
			return "", "", false, err
		}
		if made {
			digest = has.ReadDigest()
		}
	}
	return dir, digest, known, b.point(root, dir)
}

// retention is how long the store keeps a bundle that nobody builds again: other checkouts name
// theirs in their .env. The store always keeps the bundle that "current" names.
const retention = 7 * 24 * time.Hour

// point makes the link "current" lead to dir, in one step, unless dir is for another architecture,
// and removes the bundles that nobody has built for a week.
func (b *builder) point(root, dir string) error {
	now := time.Now()
	if err := os.Chtimes(dir, now, now); err != nil {
		return err
	}
	current := filepath.Join(root, "current")
	if b.arch == runtime.GOARCH {
		if err := build.Link(current, filepath.Base(dir)); err != nil {
			return err
		}
	}
	kept, err := os.Readlink(current)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(root)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name := info.Name()
		if !info.IsDir() || strings.HasPrefix(name, ".") || name == kept || now.Sub(info.ModTime()) < retention {
			continue
		}
		if err := os.RemoveAll(filepath.Join(root, name)); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) assemble(ctx context.Context, root string, parts []part, images []bundle.Image) (string, error) {
	dir, err := os.MkdirTemp(root, ".building-*")
	if err != nil {
		return "", err
	}
	index := bundle.Index{Version: bundle.Format, Platform: "linux/" + b.arch, Images: images}
	for _, p := range parts {
		f, err := p.write(ctx, dir)
		if err != nil {
			return "", errors.Join(fmt.Errorf("write %s: %w", p.Path, err), os.RemoveAll(dir))
		}
		index.Files = append(index.Files, f)
	}
	err = writeIndex(dir, index)
	if err == nil {
		var more []bundle.File
		more, err = b.documents(ctx, dir)
		index.Files = append(index.Files, more...)
	}
	if err == nil {
		err = errors.Join(writeIndex(dir, index), os.Chmod(dir, 0o755))
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

func writeIndex(dir string, index bundle.Index) error {
	data, err := index.Marshal()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, bundle.IndexFile), data, 0o644)
}

func (p part) write(ctx context.Context, dir string) (bundle.File, error) {
	name := filepath.Join(dir, p.Path)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return p.File, err
	}
	var err error
	if p.images != nil {
		err = oci.WriteArchive(name, p.images)
	} else {
		err = build.CopyFile(name, p.source, p.mode)
	}
	if err != nil {
		return p.File, err
	}
	sum, err := bundle.Sum(ctx, name)
	if err != nil {
		return p.File, err
	}
	if p.SHA256 != "" && p.SHA256 != sum {
		return p.File, fmt.Errorf("its sha256 is %s, the lock says %s", sum, p.SHA256)
	}
	info, err := os.Stat(name)
	if err != nil {
		return p.File, err
	}
	f := p.File
	f.SHA256, f.Size = sum, info.Size()
	return f, nil
}

// documents writes what the bundle in dir, with its index as far as it goes, consists of and
// what it was built from.
func (b *builder) documents(ctx context.Context, dir string) ([]bundle.File, error) {
	made, err := bundle.Read(dir)
	if err != nil {
		return nil, err
	}
	packages, err := ociarchive.Packages(ctx, made)
	if err != nil {
		return nil, err
	}
	builds := map[string]*debug.BuildInfo{}
	for name, path := range b.built {
		if builds[name], err = buildinfo.ReadFile(path); err != nil {
			return nil, fmt.Errorf("read what %s was built from: %w", name, err)
		}
	}
	if own := builds[slipwayNode]; own != nil {
		builds["node"] = own // the image, of which it is the program
	}
	list, err := sbom.Document(sbom.Of{Version: b.sources, Pins: b.lock, Bundle: made, Packages: packages, Builds: builds})
	if err != nil {
		return nil, fmt.Errorf("list what it consists of: %w", err)
	}
	origin, err := trust.NewProvenance(trust.Build{
		Pins: b.lock, Platform: made.Platform, Sources: b.sources, Contents: bundle.DigestOf(list), Builds: builds,
	}).Marshal()
	if err != nil {
		return nil, err
	}
	files := []bundle.File{
		{Path: bundle.SBOMFile, Name: "sbom", Kind: bundle.SBOM, Version: "1.6", Origin: "bundle"},
		{Path: bundle.ProvenanceFile, Name: "provenance", Kind: bundle.Provenance, Version: "1", Origin: "bundle"},
	}
	for n, text := range [][]byte{list, origin} {
		name := filepath.Join(dir, files[n].Path)
		if err := os.WriteFile(name, text, 0o644); err != nil {
			return nil, err
		}
		if files[n].SHA256, err = bundle.Sum(ctx, name); err != nil {
			return nil, err
		}
		files[n].Size = int64(len(text))
	}
	return files, nil
}
