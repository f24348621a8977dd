package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/opencontainers/go-digest"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// runtimeImages stands in for containerd: its images, and those that its CRI knows, which
// hears of what was removed later than who removed it.
type runtimeImages struct {
	imagesapi.UnimplementedImagesServer
	cri.UnimplementedImageServiceServer

	mu   sync.Mutex
	have imageNames
	late map[string]int // how often the CRI still answers for a name that was removed
	down string         // what cannot be removed
}

func (r *runtimeImages) List(ctx context.Context, _ *imagesapi.ListImagesRequest) (*imagesapi.ListImagesResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if of, _ := metadata.FromIncomingContext(ctx); !slices.Equal(of.Get("containerd-namespace"), []string{"k8s.io"}) {
		return nil, grpcstatus.Error(codes.InvalidArgument, "another namespace")
	}
	out := &imagesapi.ListImagesResponse{}
	for name, d := range r.have {
		out.Images = append(out.Images, record(name, d))
	}
	return out, nil
}

func (r *runtimeImages) Delete(_ context.Context, asked *imagesapi.DeleteImageRequest) (*emptypb.Empty, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if asked.Name == r.down {
		return nil, grpcstatus.Error(codes.Unavailable, "no space left on device")
	}
	delete(r.have, asked.Name)
	r.late[asked.Name] = 3
	return &emptypb.Empty{}, nil
}

func (r *runtimeImages) ImageStatus(_ context.Context, asked *cri.ImageStatusRequest) (*cri.ImageStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.have[asked.Image.Image]
	if known = known || r.late[asked.Image.Image] > 0; !known {
		return &cri.ImageStatusResponse{}, nil
	}
	r.late[asked.Image.Image]--
	return &cri.ImageStatusResponse{Image: &cri.Image{Id: asked.Image.Image}}, nil
}

func record(name string, d digest.Digest) *imagesapi.Image {
	return &imagesapi.Image{Name: name, Target: &types.Descriptor{Digest: d.String()}}
}

// containerd is a connection to r.
func (r *runtimeImages) containerd(t *testing.T) *grpc.ClientConn {
	t.Helper()
	r.late = map[string]int{}
	dir, err := os.MkdirTemp("", "t") // with a short path
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	require.NoError(t, err)
	server := grpc.NewServer()
	imagesapi.RegisterImagesServer(server, r)
	cri.RegisterImageServiceServer(server, r)
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	c, err := grpc.NewClient("unix://"+l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	t.Cleanup(func() { release(c) })
	return c
}

func TestAReplacedImageReachesTheCluster(t *testing.T) {
	before, now, pulled := digest.FromString("before"), digest.FromString("now"), digest.FromString("pulled")
	r := &runtimeImages{have: imageNames{
		"docker.io/library/web:1": before, "docker.io/library/web@" + before.String(): before, "sha256:01": before,
		"slipway.local/pause:1": pulled, "quay.io/x:1": pulled,
	}}
	c := r.containerd(t)
	served := imageNames{"docker.io/library/web:1": before, "docker.io/library/web@" + before.String(): before, "slipway.local/pause:1": pulled}
	gone, err := forgetReplaced(t.Context(), c, served)
	require.NoError(t, err)
	require.Empty(t, gone, "nothing was replaced")

	served = imageNames{"docker.io/library/web:1": now, "docker.io/library/web@" + now.String(): now, "slipway.local/pause:1": pulled}
	gone, err = forgetReplaced(t.Context(), c, served)
	require.NoError(t, err)
	require.Equal(t, []string{"docker.io/library/web:1"}, gone, "the kubelet asks the node's registry")
	require.Zero(t, r.late["docker.io/library/web:1"], "the CRI has heard of it")
	require.Equal(t, imageNames{
		"docker.io/library/web@" + before.String(): before, "sha256:01": before, "slipway.local/pause:1": pulled, "quay.io/x:1": pulled,
	}, r.have)
	gone, err = forgetReplaced(t.Context(), c, nil)
	require.NoError(t, err)
	require.Empty(t, gone, "a node without a registry has nothing to compare")
}

func TestAnImageThatCannotBeForgotten(t *testing.T) {
	name := "docker.io/library/web:1"
	r := &runtimeImages{have: imageNames{name: digest.FromString("before")}, down: name}
	_, err := forgetReplaced(t.Context(), r.containerd(t), imageNames{name: digest.FromString("now")})
	require.ErrorContains(t, err, "remove image "+name+": ")
	require.ErrorContains(t, err, "no space left on device")
}
