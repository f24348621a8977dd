package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// removeOldImages removes the names of images of earlier archives, and the CRI's names of
// the same content; containerd then collects the content. Images that a pod still asks for
// stay until a start at which none does, so that what runs comes back before it is
// upgraded; what came from elsewhere stays. It returns how many names it removed.
func removeOldImages(ctx context.Context, c *grpc.ClientConn, client kubernetes.Interface, keep []archiveImage, pause string) (int, error) {
	pods, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("list the pods that need images: %w", err)
	}
	ctx = metadata.AppendToOutgoingContext(ctx, "containerd-namespace", "k8s.io") // what containerd keeps for Kubernetes
	images := imagesapi.NewImagesClient(c)
	list, err := images.List(ctx, &imagesapi.ListImagesRequest{})
	if err != nil {
		return 0, fmt.Errorf("list the images: %w", err)
	}
	used := imagesOf(pods.Items)
	used[pause] = true
	gone := obsolete(list.Images, keep, used)
	for _, name := range gone {
		if _, err := images.Delete(ctx, &imagesapi.DeleteImageRequest{Name: name}); err != nil && grpcstatus.Code(err) != codes.NotFound {
			return 0, fmt.Errorf("remove image %s: %w", name, err)
		}
	}
	return len(gone), nil
}

// imagesOf are the images that the pods' containers ask for.
func imagesOf(pods []corev1.Pod) map[string]bool {
	used := map[string]bool{}
	for _, p := range pods {
		for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
			used[c.Image] = true
		}
	}
	return used
}

// obsolete are the names among have of images of an archive which are neither in keep nor
// used.
func obsolete(have []*imagesapi.Image, keep []archiveImage, used map[string]bool) []string {
	names, targets, ours := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, k := range keep {
		for name := range k.references() {
			names[name] = true
		}
	}
	old := func(h *imagesapi.Image) bool {
		return strings.HasPrefix(h.Name, registryHost+"/") && !names[h.Name] && !used[h.Name]
	}
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
