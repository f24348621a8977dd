package containers

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"path"
	"slices"
	"strings"

	"dagger.io/dagger"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/lock"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// FromRegistry takes everything by digest from a registry, as a lock file says for
// platform ("linux/amd64"). registry is host[:port]/path, below which the images are. The toolchain
// is asked for at once, the rest by Check.
//
// The engine pulls, with the credentials that `docker login` gave to who runs
// this; the cluster's node pulls by itself, from Mirror.
func FromRegistry(ctx context.Context, client *dagger.Client, from *lock.File, registry, platform string) (*Images, error) {
	of, ok := from.Bundles[platform]
	if !ok {
		return nil, &fault.Fault{
			Code: imageref.CodeNoImage, Class: fault.Usage, Op: "find the images in " + registry,
			Fix: imageref.Absent.Remedy(imageref.Engine, registry),
			Err: fmt.Errorf("the lock file has no images for %s, only for %s", platform, strings.Join(from.Platforms(), ", ")),
		}
	}
	pins, err := lock.Load()
	if err != nil {
		return nil, err
	}
	images, refs := pushed(of, registry)
	index, err := of.Index.Digest()
	if err != nil {
		return nil, err
	}
	// What the index does not name runs, too.
	images.Digest = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(index+"\n"+of.Toolchain+"\n"+of.Manifests)))
	if images.Line, err = lock.LineOf(pins, of.Index); err != nil {
		return nil, err
	}
	images.Toolchain, images.Node = client.Container().From(refs[lock.Toolchain]), client.Container().From(refs["node"])
	images.Tools = map[string]string{lock.Toolchain: of.Toolchain}
	images.Manifests = client.Directory().WithNewDirectory("/") // an empty one cannot be exported
	if of.Index.Manifests() {
		refs[lock.Manifests] = registry + "/" + lock.Manifests + "@" + of.Manifests
		images.Manifests = client.Container().From(refs[lock.Manifests]).Rootfs()
	}
	images.check = func(ctx context.Context) error {
		names := slices.Sorted(maps.Keys(refs))
		problems := make([]error, len(names))
		var group errgroup.Group
		group.SetLimit(4)
		for n, name := range names {
			group.Go(func() error {
				problems[n] = probe(ctx, client, name, refs[name])
				return nil
			})
		}
		_ = group.Wait() // the problems are in their slice
		if err := errors.Join(problems...); err != nil || !images.Pulls {
			return err
		}
		return images.probeAsNode(ctx)
	}
	return images, probe(ctx, client, lock.Toolchain, refs[lock.Toolchain])
}

// pushed is what is known of the images of a bundle in a registry, and the references of all of them
// there, by name.
func pushed(of lock.Pushed, registry string) (*Images, map[string]string) {
	i, refs := &Images{Mirror: mirror(registry), Refs: map[string]string{}, Registry: map[string]string{}}, map[string]string{}
	for _, image := range of.Index.Images {
		path, digest := image.Repository(), of.Digest(image)
		refs[image.Name] = registry + "/" + path + "@" + digest
		if !image.Added() {
			i.Refs[path], i.Registry[path] = bundle.Host+"/"+path+"@"+digest, refs[image.Name]
		}
		i.override(lock.Override{Path: path, Digest: digest, Index: image.Index, StandsFor: image.StandsFor}, refs[image.Name])
	}
	return i, refs
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

// mirror is the URL at which a node reaches registry; empty where that is the
// engine's own machine, which is another one for the node.
func mirror(registry string) string {
	host, _, _ := strings.Cut(registry, "/")
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if imageref.IsLoopback(host) {
		return ""
	}
	return "https://" + registry
}

// probe makes the engine resolve an image, which takes its manifest and its configuration, not its
// layers.
//
// Dagger 0.20.8 drops the error of a reference with a digest, keeps the container without its
// configuration, and answers everybody with it who asks for that digest with the same parent. So
// each question has a parent of its own, an image without configuration has no reference, and the
// attempt to pull it says why.
func probe(ctx context.Context, client *dagger.Client, name, ref string) error {
	image := client.Container().WithLabel("slipway.sh/question", rand.Text()).From(ref)
	if _, err := image.ImageRef(ctx); err == nil {
		return nil
	}
	_, err := image.Sync(ctx)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
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
		f.Code, f.Fix = imageref.CodePull, "see whether the engine runs (make engine), then run the same command again"
		return f
	}
	reason := imageref.ReadReason(err.Error(), ref, registry, host)
	f.Code, f.Fix = fault.Code(reason.Code()), reason.Remedy(imageref.Engine, registry)
	return f
}

// ProbeCommand is the command of this program that probes a registry for an image by its URL, with
// the account in the file of --registry-auth. A failure is written as a fault.
const ProbeCommand = "probe-registry"

// probeAsNode requests from the mirror the image of pods' sandboxes as the cluster's node will: from
// a container, which is in the engine's network and trusts whom the engine trusts, with the
// node's account.
func (i *Images) probeAsNode(ctx context.Context) error {
	_, digest, _ := strings.Cut(i.Refs["pause"], "@")
	args := []string{"slipway", ProbeCommand, i.Mirror + "/pause@" + digest}
	access := Access{}
	if i.PullSecret != nil {
		args = append(args, "--registry-auth", account)
		access.Files = map[string]*dagger.Secret{account: i.PullSecret}
	}
	done := fresh(access.into(i.Toolchain)).WithExec(args, dagger.ContainerWithExecOpts{Expect: dagger.ReturnTypeAny})
	code, err := done.ExitCode(ctx)
	if err != nil || code == 0 {
		return err
	}
	said, err := done.Stderr(ctx)
	if err != nil {
		return err
	}
	f := ParseFault(said)
	if f == nil {
		return fmt.Errorf("ask %s as the cluster's node does: exit status %d: %s", i.Mirror, code, tail(said, 400))
	}
	switch f.Code {
	case imageref.CodeLogin:
		f.Fix = "log in with an account that may pull from it (docker login), or give a file with one: --registry-auth FILE; dagger call needs the file, before the function: --registry-auth file:~/.docker/config.json"
	case imageref.CodeUnreachable:
		f.Fix = `see why it does not answer the engine's containers, or give an address at which it does: local: {registryMirror: "http://192.0.2.1:5000/slipway"}`
	}
	return f
}
