package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	contentapi "github.com/containerd/containerd/api/services/content/v1"
	diffapi "github.com/containerd/containerd/api/services/diff/v1"
	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	leasesapi "github.com/containerd/containerd/api/services/leases/v1"
	snapshotsapi "github.com/containerd/containerd/api/services/snapshots/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/identity"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// Labels by which containerd knows what an image needs, and what it collects as
// garbage.
const (
	labelContent  = "containerd.io/gc.ref.content."
	labelSnapshot = "containerd.io/gc.ref.snapshot."
	labelExpire   = "containerd.io/gc.expire"
)

// importer brings images of an archive into containerd, in the namespace of
// Kubernetes.
type importer struct {
	connection  *grpc.ClientConn
	snapshotter string
	layers      sync.Map // chain id → func() error that unpacks it once
}

// labelImported is on the names that the node gave.
const labelImported = "slipway.sh/imported"

// importArchive makes every image of a resolvable by name and by digest and
// unpacks it. The record file holds the digest of what is imported: with the same one
// there is nothing to do.
func importArchive(ctx context.Context, c *grpc.ClientConn, a *archive, images []archiveImage, snapshotter, record string) (imported bool, err error) {
	content := importDigest(a, images)
	if old, err := os.ReadFile(record); err == nil && strings.TrimSpace(string(old)) == content {
		return false, nil
	}
	i := &importer{connection: c, snapshotter: snapshotter}
	ctx = inKubernetes(ctx)
	ctx, release, err := i.lease(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, release()) }()

	if err := i.writeBlobs(ctx, a, images); err != nil {
		return false, err
	}
	for _, image := range images {
		for name, target := range image.references() {
			if err := i.name(ctx, name, target); err != nil {
				return false, err
			}
		}
	}
	unpack, ctxUnpack := errgroup.WithContext(ctx)
	unpack.SetLimit(2)
	for _, image := range images {
		unpack.Go(func() error {
			if err := i.unpack(ctxUnpack, image, len(image.manifest.Layers)); err != nil {
				return fmt.Errorf("unpack image %s: %w", image.name, err)
			}
			return nil
		})
	}
	if err := unpack.Wait(); err != nil {
		return false, err
	}
	if err := awaitImages(ctx, c, images); err != nil {
		return false, err
	}
	return true, writeFile(record, []byte(content+"\n"), 0o644)
}

// importDigest is that of an archive and of the names that its images get.
func importDigest(a *archive, images []archiveImage) string {
	named := map[string]bool{}
	for _, m := range a.index.Manifests {
		named[m.Annotations[imageName]] = true
	}
	var more []string
	for _, image := range images {
		if !named[image.name] {
			more = append(more, image.name+" "+image.target.Digest.String())
		}
	}
	if len(more) == 0 {
		return a.digest
	}
	return digest.FromString(a.digest + "\n" + strings.Join(more, "\n")).String()
}

// inKubernetes makes calls with ctx concern what containerd keeps for Kubernetes.
func inKubernetes(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "containerd-namespace", "k8s.io")
}

// lease protects what is being imported from containerd's garbage collector,
// for an hour at most if the node is killed.
func (i *importer) lease(ctx context.Context) (context.Context, func() error, error) {
	leases := leasesapi.NewLeasesClient(i.connection)
	id := fmt.Sprintf("slipway-import-%d", time.Now().UnixNano())
	_, err := leases.Create(ctx, &leasesapi.CreateRequest{ID: id, Labels: map[string]string{
		labelExpire: time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
	}})
	if err != nil {
		return nil, nil, fmt.Errorf("take a lease for the import: %w", err)
	}
	release := func() error {
		if _, err := leases.Delete(context.WithoutCancel(ctx), &leasesapi.DeleteRequest{ID: id}); err != nil {
			return fmt.Errorf("release the lease of the import: %w", err)
		}
		return nil
	}
	return metadata.AppendToOutgoingContext(ctx, "containerd-lease", id), release, nil
}

// writeBlobs stores what the images consist of, each blob once. The label of a
// blob names the blobs and the snapshot that must live as long as it does.
func (i *importer) writeBlobs(ctx context.Context, a *archive, images []archiveImage) error {
	labels := map[digest.Digest]map[string]string{}
	refer := func(from digest.Digest, key, to string) {
		if labels[from] == nil {
			labels[from] = map[string]string{}
		}
		if key != "" {
			labels[from][key] = to
		}
	}
	for _, image := range images {
		above := image.ancestors
		for n, index := range above {
			child := image.descriptor
			if n+1 < len(above) {
				child = above[n+1]
			}
			refer(index.Digest, labelContent+"m.0", child.Digest.String())
		}
		m := image.descriptor.Digest
		refer(m, labelContent+"config", image.manifest.Config.Digest.String())
		refer(image.manifest.Config.Digest, labelSnapshot+i.snapshotter, identity.ChainID(image.config.RootFS.DiffIDs).String())
		for n, layer := range image.manifest.Layers {
			refer(m, fmt.Sprintf("%sl.%d", labelContent, n), layer.Digest.String())
			refer(layer.Digest, "", "")
		}
	}
	write, ctx := errgroup.WithContext(ctx)
	write.SetLimit(4)
	for _, d := range slices.Sorted(maps.Keys(labels)) {
		write.Go(func() error {
			if err := i.writeBlob(ctx, a, d, labels[d]); err != nil {
				return fmt.Errorf("store blob %s: %w", d, err)
			}
			return nil
		})
	}
	return write.Wait()
}

// writeBlob stores one blob; containerd verifies its digest.
func (i *importer) writeBlob(ctx context.Context, a *archive, d digest.Digest, labels map[string]string) error {
	content := contentapi.NewContentClient(i.connection)
	if _, err := content.Info(ctx, &contentapi.InfoRequest{Digest: d.String()}); err == nil {
		_, err := content.Update(ctx, &contentapi.UpdateRequest{
			Info:       &contentapi.Info{Digest: d.String(), Labels: labels},
			UpdateMask: labelMask(labels),
		})
		return err
	} else if grpcstatus.Code(err) != codes.NotFound {
		return err
	}
	r, ok := a.blob(d)
	if !ok {
		return errors.New("the archive does not hold it")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the stream
	stream, err := content.Write(ctx)
	if err != nil {
		return err
	}
	send := func(m *contentapi.WriteContentRequest) error {
		m.Ref = "slipway-import-" + d.Encoded()
		if err := stream.Send(m); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		_, err := stream.Recv()
		return err
	}
	buffer := make([]byte, 1<<20)
	var offset int64
	for offset < r.Size() {
		n, err := r.Read(buffer)
		if err != nil {
			return fmt.Errorf("read it from the archive: %w", err)
		}
		if err := send(&contentapi.WriteContentRequest{
			Action: contentapi.WriteAction_WRITE, Total: r.Size(), Offset: offset, Data: buffer[:n],
		}); err != nil {
			return err
		}
		offset += int64(n)
	}
	err = send(&contentapi.WriteContentRequest{
		Action: contentapi.WriteAction_COMMIT, Total: r.Size(), Offset: offset, Expected: d.String(), Labels: labels,
	})
	if grpcstatus.Code(err) == codes.AlreadyExists {
		return nil
	}
	return err
}

func labelMask(labels map[string]string) *fieldmaskpb.FieldMask {
	m := &fieldmaskpb.FieldMask{}
	for key := range labels {
		m.Paths = append(m.Paths, "labels."+key)
	}
	return m
}

// name makes ref resolve to the target.
func (i *importer) name(ctx context.Context, ref string, target ocispec.Descriptor) error {
	images := imagesapi.NewImagesClient(i.connection)
	image := &imagesapi.Image{
		Name:   ref,
		Labels: map[string]string{labelImported: "true"},
		Target: &types.Descriptor{MediaType: target.MediaType, Digest: target.Digest.String(), Size: target.Size},
	}
	_, err := images.Create(ctx, &imagesapi.CreateImageRequest{Image: image})
	if grpcstatus.Code(err) == codes.AlreadyExists {
		_, err = images.Update(ctx, &imagesapi.UpdateImageRequest{Image: image})
	}
	if err != nil {
		return fmt.Errorf("name image %s: %w", ref, err)
	}
	return nil
}

// unpack makes snapshots of the image's first n layers. A layer that several
// images share is unpacked once.
func (i *importer) unpack(ctx context.Context, image archiveImage, n int) error {
	if n == 0 {
		return nil
	}
	chain := identity.ChainID(image.config.RootFS.DiffIDs[:n]).String()
	once, _ := i.layers.LoadOrStore(chain, sync.OnceValue(func() error {
		if err := i.unpack(ctx, image, n-1); err != nil {
			return err
		}
		parent := ""
		if n > 1 {
			parent = identity.ChainID(image.config.RootFS.DiffIDs[:n-1]).String()
		}
		return i.unpackLayer(ctx, image.manifest.Layers[n-1], image.config.RootFS.DiffIDs[n-1], parent, chain)
	}))
	return once.(func() error)()
}

func (i *importer) unpackLayer(ctx context.Context, layer ocispec.Descriptor, diffID digest.Digest, parent, chain string) error {
	snapshots := snapshotsapi.NewSnapshotsClient(i.connection)
	if _, err := snapshots.Stat(ctx, &snapshotsapi.StatSnapshotRequest{Snapshotter: i.snapshotter, Key: chain}); err == nil {
		return nil
	} else if grpcstatus.Code(err) != codes.NotFound {
		return fmt.Errorf("look for its snapshot: %w", err)
	}
	key := fmt.Sprintf("slipway-import-%d %s", time.Now().UnixNano(), chain)
	prepared, err := snapshots.Prepare(ctx, &snapshotsapi.PrepareSnapshotRequest{Snapshotter: i.snapshotter, Key: key, Parent: parent})
	if err != nil {
		return fmt.Errorf("prepare a snapshot: %w", err)
	}
	applied, err := diffapi.NewDiffClient(i.connection).Apply(ctx, &diffapi.ApplyRequest{
		Diff:   &types.Descriptor{MediaType: layer.MediaType, Digest: layer.Digest.String(), Size: layer.Size},
		Mounts: prepared.Mounts,
	})
	if err == nil && applied.Applied.Digest != diffID.String() {
		err = fmt.Errorf("layer %s unpacks to %s instead of %s", layer.Digest, applied.Applied.Digest, diffID)
	}
	if err == nil {
		_, err = snapshots.Commit(ctx, &snapshotsapi.CommitSnapshotRequest{Snapshotter: i.snapshotter, Key: key, Name: chain})
	}
	if err == nil {
		return nil
	}
	_, removeErr := snapshots.Remove(context.WithoutCancel(ctx), &snapshotsapi.RemoveSnapshotRequest{Snapshotter: i.snapshotter, Key: key})
	if grpcstatus.Code(err) == codes.AlreadyExists { // the CRI was faster
		return nil
	}
	return errors.Join(fmt.Errorf("unpack layer %s: %w", layer.Digest, err), removeErr)
}
