package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"github.com/opencontainers/go-digest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/util/wait"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// imageNames are references of images, and the digest that each resolves to.
type imageNames map[string]digest.Digest

// forgetReplaced removes the names from containerd that resolve to another image than the node's
// registry serves under them, so that a pod gets that one: the kubelet asks no registry for a name
// that containerd knows. It returns these names once the CRI, which hears of it by events, does not
// know them either. The kubelet removes images that nothing uses.
func forgetReplaced(ctx context.Context, c *grpc.ClientConn, served imageNames) (gone []string, err error) {
	ctx = metadata.AppendToOutgoingContext(ctx, "containerd-namespace", "k8s.io")
	images := imagesapi.NewImagesClient(c)
	list, err := images.List(ctx, &imagesapi.ListImagesRequest{})
	if err != nil {
		return nil, fmt.Errorf("list the images: %w", err)
	}
	for _, i := range list.Images {
		if now, ok := served[i.Name]; ok && now.String() != i.Target.Digest {
			gone = append(gone, i.Name)
		}
	}
	slices.Sort(gone)
	service := cri.NewImageServiceClient(c)
	for _, name := range gone {
		if _, err := images.Delete(ctx, &imagesapi.DeleteImageRequest{Name: name}); err != nil && grpcstatus.Code(err) != codes.NotFound {
			return nil, fmt.Errorf("remove image %s: %w", name, err)
		}
		var last error
		err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
			r, err := service.ImageStatus(ctx, &cri.ImageStatusRequest{Image: &cri.ImageSpec{Image: name}})
			last = err
			return err == nil && r.Image == nil, nil
		})
		if err != nil {
			return nil, fmt.Errorf("wait until the kubelet no longer sees the image that was %s: %w", name, errors.Join(err, last))
		}
	}
	return gone, nil
}
