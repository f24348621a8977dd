package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// namesFile is where a node keeps which images came from its registry.
const namesFile = "images.json"

// imageNames are references of images, and the digest that each resolves to.
type imageNames map[string]digest.Digest

// namesOf are the references that the registry of an archive's images answers to. Where
// several images have one, the first counts, as it does there.
func namesOf(images []archiveImage) imageNames {
	names := imageNames{}
	for _, i := range images {
		for name, target := range i.references() {
			if _, ok := names[name]; !ok {
				names[name] = target.Digest
			}
		}
	}
	return names
}

// readNames reads what writeNames wrote; without the file there are none.
func readNames(file string) (imageNames, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return imageNames{}, nil
	}
	names := imageNames{}
	if err == nil {
		err = json.Unmarshal(text, &names)
	}
	if err != nil {
		return imageNames{}, fmt.Errorf("read which images came from the node's registry: %s: %w", file, err)
	}
	return names, nil
}

// writeNames keeps names for the next start.
func writeNames(file string, names imageNames) error {
	text, err := json.MarshalIndent(names, "", "  ")
	if err == nil {
		err = writeFile(file, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep which images came from the node's registry: %w", err)
	}
	return nil
}

// containerdImages are the images that containerd has for Kubernetes, by name.
type containerdImages struct {
	images imagesapi.ImagesClient
	have   []*imagesapi.Image
}

// listImages asks containerd. The context that it returns is for further calls.
func listImages(ctx context.Context, c *grpc.ClientConn) (context.Context, *containerdImages, error) {
	ctx = metadata.AppendToOutgoingContext(ctx, "containerd-namespace", "k8s.io")
	images := imagesapi.NewImagesClient(c)
	list, err := images.List(ctx, &imagesapi.ListImagesRequest{})
	if err != nil {
		return ctx, nil, fmt.Errorf("list the images: %w", err)
	}
	return ctx, &containerdImages{images: images, have: list.Images}, nil
}

// remove removes names; the content goes with its last one.
func (i *containerdImages) remove(ctx context.Context, names []string) error {
	for _, name := range names {
		if _, err := i.images.Delete(ctx, &imagesapi.DeleteImageRequest{Name: name}); err != nil && grpcstatus.Code(err) != codes.NotFound {
			return fmt.Errorf("remove image %s: %w", name, err)
		}
	}
	return nil
}

// forgetReplaced removes the names that resolve to another image than the node's registry
// has under them, so that a pod gets that one: the kubelet asks no registry for a name that
// containerd knows. It returns these names once the CRI does not know them either, which
// hears of it by events, and which of the names that are left came from the registry:
// those that came says, of earlier starts, and those that it has now.
func forgetReplaced(ctx context.Context, c *grpc.ClientConn, served, came imageNames) (gone []string, left imageNames, err error) {
	ctx, images, err := listImages(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	left = maps.Clone(served)
	for _, h := range images.have {
		now, ok := served[h.Name]
		was := digest.Digest(h.Target.Digest)
		switch {
		case ok && now != was:
			gone = append(gone, h.Name)
		case !ok && came[h.Name] == was:
			left[h.Name] = was
		}
	}
	slices.Sort(gone)
	if err := images.remove(ctx, gone); err != nil {
		return nil, nil, err
	}
	service := cri.NewImageServiceClient(c)
	for _, name := range gone {
		var last error
		err := poll(ctx, 30*time.Second, 20*time.Millisecond, func(ctx context.Context) bool {
			r, err := service.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
			last = err
			return err == nil && r.Image == nil
		})
		if err != nil {
			return nil, nil, fmt.Errorf("wait until the kubelet no longer sees the image that was %s: %w", name, errors.Join(err, last))
		}
	}
	return gone, left, nil
}

// removeOldImages removes the names of images that the node's registry had and has no
// more, and the CRI's names of the same content; containerd then collects the content.
// Images that a pod still asks for stay until a start at which none does, so that what runs
// comes back before it is upgraded; what came from elsewhere stays. It returns the names
// that it removed.
func removeOldImages(ctx context.Context, c *grpc.ClientConn, client kubernetes.Interface, o oldImages, pause string) ([]string, error) {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the pods that need images: %w", err)
	}
	ctx, images, err := listImages(ctx, c)
	if err != nil {
		return nil, err
	}
	used := imagesOf(pods.Items)
	used[pause] = true
	gone := o.among(images.have, used)
	return gone, images.remove(ctx, gone)
}

// imagesOf are the images that the pods' containers ask for, as containerd names them.
func imagesOf(pods []corev1.Pod) map[string]bool {
	used := map[string]bool{}
	for _, p := range pods {
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			used[c.Image] = true
			if ref, err := reference.ParseDockerRef(c.Image); err == nil {
				used[ref.String()] = true
			}
		}
	}
	return used
}

// oldImages tell the images that the node's registry had and has no more.
type oldImages struct {
	served imageNames // by the registry
	came   imageNames // from it, now or at earlier starts
	own    bool       // slipway.local is the registry's as well, and not the mirror's
}

// among are the old names among have, but for those that are used.
func (o oldImages) among(have []*imagesapi.Image, used map[string]bool) []string {
	old := func(h *imagesapi.Image) bool {
		if _, ok := o.served[h.Name]; ok || used[h.Name] {
			return false
		}
		if strings.HasPrefix(h.Name, registryHost+"/") {
			return o.own
		}
		return o.came[h.Name] == digest.Digest(h.Target.Digest)
	}
	targets, ours := map[string]bool{}, map[string]bool{}
	for _, h := range have {
		switch {
		case old(h):
			ours[h.Target.Digest] = true
		case !strings.HasPrefix(h.Name, "sha256:"):
			targets[h.Target.Digest] = true // a name that stays
		}
	}
	var gone []string
	for _, h := range have {
		switch {
		case old(h):
			gone = append(gone, h.Name)
		case strings.HasPrefix(h.Name, "sha256:") && ours[h.Target.Digest] && !targets[h.Target.Digest]:
			gone = append(gone, h.Name)
		}
	}
	slices.Sort(gone)
	return gone
}
