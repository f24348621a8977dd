package containers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strings"

	"dagger.io/dagger"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref/refused"
)

// FromRegistry takes everything by digest from a registry, as pins say for
// platform ("linux/amd64"). registry is host[:port]/path, below which an image
// has its short name. The toolchain is asked for at once, the rest by Check.
//
// The engine pulls, with the credentials that `docker login` gave to who runs
// this; the cluster's node pulls by itself, from Mirror.
func FromRegistry(ctx context.Context, client *dagger.Client, pins *lock.Lock, registry, platform string) (*Images, error) {
	refs, added, err := pulled(pins, registry, platform)
	if err != nil {
		return nil, err
	}
	images := &Images{
		Toolchain: client.Container().From(refs["toolchain"]),
		Node:      client.Container().From(refs["node"]),
		Manifests: client.Directory().WithNewDirectory("/"), // an empty one cannot be exported
		Mirror:    mirror(registry),
		Line:      pins.Lines[platform],
	}
	if ref := refs[manifests]; ref != "" { // else the bundle's platform needs none
		images.Manifests = client.Container().From(ref).Rootfs()
	}
	_, digest, _ := strings.Cut(refs["toolchain"], "@")
	images.Tools = map[string]string{"toolchain": digest}
	images.name(refs)
	images.fromLock(pins, registry, platform)
	images.Digest = images.identity(refs)
	images.check = func(ctx context.Context) error {
		all := maps.Clone(refs)
		maps.Copy(all, added)
		names := slices.Sorted(maps.Keys(all))
		problems := make([]error, len(names))
		var group errgroup.Group
		group.SetLimit(4)
		for n, name := range names {
			group.Go(func() error {
				problems[n] = ask(ctx, client, name, all[name])
				return nil
			})
		}
		_ = group.Wait() // the problems are in their slice
		if err := errors.Join(problems...); err != nil || !images.Pulls {
			return err
		}
		return images.askAsNode(ctx)
	}
	return images, ask(ctx, client, "toolchain", refs["toolchain"])
}

// Check has the engine resolve every image and names each that it cannot, and asks for one as
// the node will. One that the engine still has from an earlier run may not be asked for again:
// if the registry has lost it since, the node finds out. The files of a bundle were checked
// before.
func (i *Images) Check(ctx context.Context) error {
	if i.check == nil {
		return nil
	}
	return i.check(ctx)
}

// manifests is the short name of the image with the third-party manifests.
const manifests = "manifests"

// pulled are the references by digest of everything that a run takes, by short
// name; the manifests are under the name manifests. Those of images that were added to
// the bundle are by what they were added as.
func pulled(pins *lock.Lock, registry, platform string) (refs, added map[string]string, err error) {
	refs, added = map[string]string{}, map[string]string{}
	var missing []string
	add := func(key, name string, by map[string]lock.Registry) {
		if r, ok := by[platform]; ok {
			refs[key] = registry + "/" + key + "@" + r.Digest
		} else {
			missing = append(missing, name)
		}
	}
	for _, i := range pins.Images {
		if _, ok := i.Registry[platform]; ok || !i.OnDemand {
			add(i.Name, i.Name, i.Registry)
		}
	}
	for _, m := range pins.Manifests {
		add(manifests, "manifests of "+m.Name, m.Registry)
	}
	for _, a := range pins.Added {
		if r, ok := a.Registry[platform]; ok { // else it was added to the bundle of another
			added[a.Name] = registry + "/" + a.Path + "@" + r.Digest
		}
	}
	for _, name := range []string{"toolchain", "node"} {
		if refs[name] == "" && !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return refs, added, nil
	}
	return nil, nil, &fault.Fault{
		Code: refused.CodeNoImage, Class: fault.Usage, Op: "find the images in " + registry,
		Fix: refused.Absent.Remedy(refused.Engine, registry),
		Err: fmt.Errorf("the lock has no digest for %s of: %s", platform, strings.Join(missing, ", ")),
	}
}

// identity is the same for the same images by short name and the same overrides,
// whichever registry has them.
func (i *Images) identity(refs map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		_, digest, _ := strings.Cut(refs[name], "@")
		fmt.Fprintf(h, "%s@%s\n", name, digest)
	}
	fmt.Fprintln(h, i.overridesText())
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// mirror is the URL at which a node reaches registry; empty where that is the
// engine's own machine, which is another one for the node.
func mirror(registry string) string {
	host, _, _ := strings.Cut(registry, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if lock.IsLoopback(host) {
		return ""
	}
	return "https://" + registry
}

// resolve makes the engine resolve an image, which takes its manifest and its
// configuration, not its layers.
func resolve(ctx context.Context, client *dagger.Client, ref string) error {
	_, err := client.Container().From(ref).Platform(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func ask(ctx context.Context, client *dagger.Client, name, ref string) error {
	err := resolve(ctx, client, ref)
	if err == nil || ctx.Err() != nil {
		return err
	}
	return registryFault(name, ref, err)
}

// registryFault says why the engine could not resolve an image. The engine tells
// it in words only: those of containerd's client. An error of the network itself
// is one between this program and the engine.
func registryFault(name, ref string, err error) error {
	registry, _ := path.Split(ref[:strings.LastIndexByte(ref, '@')])
	registry = strings.TrimSuffix(registry, "/")
	host, _, _ := strings.Cut(registry, "/")
	f := &fault.Fault{Class: fault.Preflight, Op: fmt.Sprintf("take the image %s from %s", name, registry), Err: err}
	if _, network := errors.AsType[net.Error](err); network {
		f.Code, f.Fix = refused.CodePull, "see whether the engine runs (make engine), then run the same command again"
		return f
	}
	reason := refused.Read(err.Error(), ref, registry, host)
	f.Code, f.Fix = fault.Code(reason.Code()), reason.Remedy(refused.Engine, registry)
	return f
}
