package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	imagesapi "github.com/containerd/containerd/api/services/images/v1"
	"github.com/containerd/containerd/api/types"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
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

// startOf is a node at its start, whose registry has some images and whose containerd is r.
func startOf(t *testing.T, r *runtimeImages, data string, served imageNames, pods ...corev1.Pod) *node {
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
	n := &node{settings: settings{Data: data, PauseImage: "slipway.local/pause:1", OwnNames: true}, runtime: c, archive: &archive{}, served: served}
	n.pulls = (&imageServer{}).handler()
	n.logLine = func(line string) { t.Log(line) }
	client := fake.NewClientset()
	for i := range pods {
		_, err := client.CoreV1().Pods("default").Create(t.Context(), &pods[i], metav1.CreateOptions{})
		require.NoError(t, err)
	}
	n.client = client
	return n
}

// start does what a start does with images, and says which the CRI knows when pods start.
func (r *runtimeImages) start(t *testing.T, n *node) (known []string) {
	t.Helper()
	came, err := n.forgetReplaced(t.Context())
	require.NoError(t, err)
	r.mu.Lock()
	for name := range r.have {
		known = append(known, name)
	}
	for name, times := range r.late {
		if times > 0 {
			known = append(known, name)
		}
	}
	r.mu.Unlock()
	n.removeOldImages(t.Context(), came)
	slices.Sort(known)
	return known
}

func asks(name, image string) corev1.Pod {
	return corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
}

func TestAReplacedImageReachesTheCluster(t *testing.T) {
	before, now, pulled := digest.FromString("before"), digest.FromString("now"), digest.FromString("pulled")
	data := t.TempDir()
	has := func(d digest.Digest) imageNames {
		return imageNames{"docker.io/library/web:1": d, "docker.io/library/web@" + d.String(): d, "slipway.local/pause:1": pulled}
	}
	elsewhere := imageNames{"quay.io/x:1": pulled, "quay.io/x@" + pulled.String(): pulled, "sha256:03": pulled}
	r := &runtimeImages{have: imageNames{
		"docker.io/library/web:1": before, "docker.io/library/web@" + before.String(): before, "sha256:01": before,
		"slipway.local/pause:1": pulled,
	}}
	for name, d := range elsewhere {
		r.have[name] = d
	}
	first := r.start(t, startOf(t, r, data, has(before)))
	require.Contains(t, first, "docker.io/library/web:1", "nothing was replaced")

	second := r.start(t, startOf(t, r, data, has(now), asks("a", "web:1"), asks("b", "web@"+before.String())))
	require.NotContains(t, second, "docker.io/library/web:1", "the kubelet asks the node's registry")
	require.Contains(t, second, "docker.io/library/web@"+before.String())
	require.Contains(t, r.have, "docker.io/library/web@"+before.String(), "a pod asks for it")
	require.Contains(t, r.have, "sha256:01")

	r.have["docker.io/library/web:1"], r.have["docker.io/library/web@"+now.String()], r.have["sha256:02"] = now, now, now
	third := r.start(t, startOf(t, r, data, has(now), asks("a", "web:1")))
	require.Contains(t, third, "docker.io/library/web:1")
	require.NotContains(t, r.have, "docker.io/library/web@"+before.String())
	require.NotContains(t, r.have, "sha256:01", "nor its content")

	// The bundle has it no more.
	dropped := imageNames{"slipway.local/pause:1": pulled}
	r.start(t, startOf(t, r, data, dropped, asks("a", "web:1")))
	require.Contains(t, r.have, "docker.io/library/web:1", "a pod asks for it")
	r.start(t, startOf(t, r, data, dropped))
	elsewhere["slipway.local/pause:1"] = pulled
	require.Equal(t, elsewhere, r.have, "what came from elsewhere stays")

	// What a pod then gets from elsewhere is not the bundle's.
	r.have["docker.io/library/web:1"] = now
	r.start(t, startOf(t, r, data, dropped))
	require.Contains(t, r.have, "docker.io/library/web:1")
}

func TestAnImageThatCannotBeForgotten(t *testing.T) {
	data, name := t.TempDir(), "docker.io/library/web:1"
	before, now := digest.FromString("before"), digest.FromString("now")
	r := &runtimeImages{have: imageNames{name: before}, down: name}
	n := startOf(t, r, data, imageNames{name: now})
	_, err := n.forgetReplaced(t.Context())
	require.ErrorContains(t, err, "remove image "+name+": ")
	require.ErrorContains(t, err, "no space left on device")
	r.down = ""

	// A record that cannot be read costs room only.
	require.NoError(t, os.WriteFile(n.file(namesFile), []byte("{"), 0o600))
	var said []string
	n.logLine = func(line string) { said = append(said, line) }
	came, err := n.forgetReplaced(t.Context())
	require.NoError(t, err)
	require.Empty(t, r.have)
	require.Equal(t, imageNames{name: now}, came)
	require.Contains(t, strings.Join(said, "\n"), n.file(namesFile)+": unexpected end of JSON input")
	kept, err := readNames(n.file(namesFile))
	require.NoError(t, err)
	require.Equal(t, came, kept)

	n.OwnNames = false
	came, err = n.forgetReplaced(t.Context())
	require.NoError(t, err)
	require.Empty(t, came, "a node without a registry has nothing to compare")
}

func TestObsoleteImages(t *testing.T) {
	kept, old, pulled := digest.FromString("kept"), digest.FromString("old"), digest.FromString("pulled")
	served := namesOf([]archiveImage{{name: "slipway.local/a:2", target: ocispec.Descriptor{Digest: kept}, descriptor: ocispec.Descriptor{Digest: kept}}})
	have := []*imagesapi.Image{
		record("slipway.local/a:2", kept), record("slipway.local/a@"+kept.String(), kept), record("sha256:01", kept),
		record("slipway.local/a:1", old), record("slipway.local/a@"+old.String(), old), record("sha256:02", old),
		record("docker.io/library/b:1", pulled), record("sha256:03", pulled),
		record("slipway.local/b:1", pulled),
	}
	o := oldImages{served: served, own: true}
	require.Equal(t, []string{"sha256:02", "slipway.local/a:1", "slipway.local/a@" + old.String(), "slipway.local/b:1"}, o.among(have, nil))

	pods := []corev1.Pod{{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Image: "slipway.local/a@" + old.String()}}}}}
	require.Equal(t, []string{"slipway.local/a:1", "slipway.local/b:1"}, o.among(have, imagesOf(pods)), "a pod needs it")

	o.own = false
	require.Empty(t, o.among(have, nil), "slipway.local is the mirror's")

	// What came from the node's registry goes too, whatever registry it is named after.
	o.came = imageNames{"docker.io/library/b:1": pulled, "docker.io/library/c:1": old}
	more := append(have, record("docker.io/library/c:1", pulled))
	require.Equal(t, []string{"docker.io/library/b:1"}, o.among(more, nil), "c was pulled from elsewhere since")
	require.Empty(t, o.among(more, map[string]bool{"docker.io/library/b:1": true}))
	require.Equal(t, map[string]bool{"b:1": true, "docker.io/library/b:1": true}, imagesOf([]corev1.Pod{asks("x", "b:1")}), "as containerd names it")
}
