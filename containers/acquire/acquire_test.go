package acquire

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/containers/bundle"
	"github.com/slipway-sh/slipway/containers/ociarchive"
	"github.com/slipway-sh/slipway/containers/registries"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// newBundle makes a bundle for linux/amd64.
func newBundle(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	index := bundle.Index{Version: bundle.Format, Platform: "linux/amd64", Images: []bundle.Image{{
		Name: "redis", Ref: "slipway.local/redis:7.0", Digest: "sha256:" + strings.Repeat("a", 64),
		StandsFor: []string{"public.ecr.aws/docker/library/redis:8"},
	}}}
	for name, content := range map[string]string{"bin/slipway": "program", "images/workloads.tar": "images"} {
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755))
		sum := sha256.Sum256([]byte(content))
		index.Files = append(index.Files, bundle.File{Path: name, Name: "x", Kind: bundle.Images, Version: "1", Origin: "images", SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))})
	}
	text, err := index.Marshal()
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.IndexFile), text, 0o644))
	return dir
}

// add adds and returns what was reported at the end of each image.
func add(t *testing.T, o Options, images ...string) ([]registries.Progress, error) {
	t.Helper()
	var finished []registries.Progress
	for _, text := range images {
		r, err := ParseRequest(text)
		require.NoError(t, err)
		o.Images = append(o.Images, r)
	}
	o.Observe = func(p registries.Progress) {
		require.LessOrEqual(t, p.Done, p.Total)
		if p.Finished {
			finished = append(finished, p)
		}
	}
	err := Add(t.Context(), o)
	return finished, err
}

// content is every file of a directory, by path.
func content(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(text)
		return err
	}))
	return out
}

// imageOf is the bundle's image that stands for a reference, read from its archive.
func imageOf(t *testing.T, dir, ref string) (bundle.Image, v1.Image) {
	t.Helper()
	verify(t, dir)
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	for _, i := range b.Index.Images {
		for _, s := range i.StandsFor {
			if s == ref {
				a, err := ociarchive.Open(b.Path(i.Archive))
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, a.Close()) })
				image, err := a.Image(i.Ref, i.Digest)
				require.NoError(t, err)
				return i, image
			}
		}
	}
	t.Fatalf("the bundle has no %s", ref)
	return bundle.Image{}, nil
}

func TestFromARegistry(t *testing.T) {
	dir, host := newBundle(t), server(t, nil)
	before := content(t, dir)
	index, amd64 := multi(t)
	push(t, host+"/team/web:1", index)
	top, err := index.Digest()
	require.NoError(t, err)

	finished, err := add(t, Options{Dir: dir}, host+"/team/web:1")
	require.NoError(t, err)
	require.Len(t, finished, 1)
	require.False(t, finished[0].There)
	require.Positive(t, finished[0].Total)
	i, image := imageOf(t, dir, host+"/team/web:1")
	want, err := amd64.Digest()
	require.NoError(t, err)
	require.Equal(t, want.String(), i.Digest, "of the bundle's platform")
	require.Equal(t, top.String(), i.Index, "by which its registry knows it")
	require.NoError(t, sameLayers(image, amd64))
	require.Contains(t, bundle.Names(i.StandsFor, i.Digest, i.Index), host+"/team/web@"+top.String())
	after := content(t, dir)
	for name, text := range before {
		if name != bundle.IndexFile {
			require.Equal(t, text, after[name], "nothing that was there is written again")
		}
	}

	// Again, by tag and by digest: nothing changes.
	finished, err = add(t, Options{Dir: dir}, host+"/team/web:1", host+"/team/web:1@"+top.String())
	require.NoError(t, err)
	require.True(t, finished[0].There)
	require.True(t, finished[1].There)
	require.Equal(t, after, content(t, dir))

	// The same image under another reference needs no second archive.
	_, err = add(t, Options{Dir: dir}, "quay.io/team/web:1="+host+"/team/web:1", "quay.io/team/web@"+top.String()+"="+host+"/team/web:1")
	require.NoError(t, err)
	i, _ = imageOf(t, dir, "quay.io/team/web:1")
	require.Equal(t, []string{host + "/team/web:1", "quay.io/team/web:1", "quay.io/team/web@" + top.String()}, i.StandsFor)
	require.Len(t, content(t, dir), len(after))
}

func TestWhatCannotBeAdded(t *testing.T) {
	host := server(t, nil)
	index, _ := multi(t)
	push(t, host+"/web:1", index)
	push(t, host+"/arm:1", platform(t, "linux", "arm64"))
	push(t, host+"/windows:1", only(t, platform(t, "windows", "amd64")))
	refusing := server(t, func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path == "/v2/" {
			return false
		}
		w.WriteHeader(http.StatusUnauthorized)
		return true
	})
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	empty := t.TempDir()
	plain := filepath.Join(empty, "plain.tar")
	require.NoError(t, os.WriteFile(plain, []byte("no archive"), 0o600))
	packed := filepath.Join(empty, "packed.tar")
	require.NoError(t, os.WriteFile(packed, []byte("\x1f\x8b\x08\x00\x00"), 0o600))
	for what, c := range map[string]struct {
		image string
		code  fault.Code
		says  string
	}{
		"another tag":              {host + "/web:2", CodeAbsent, "add the image " + host + "/web:2 from"},
		"another repository":       {"docker.io/library/x=" + host + "/absent:1", CodeAbsent, host},
		"another platform":         {host + "/arm:1", CodeAbsent, "it is for linux/arm64, the bundle is for linux/amd64"},
		"no such platform":         {host + "/windows:1", CodeAbsent, "only for windows/amd64"},
		"another digest":           {host + "/web:1@sha256:" + strings.Repeat("1", 64), CodeAbsent, ""},
		"another one's digest":     {"quay.io/web@sha256:" + strings.Repeat("1", 64) + "=" + host + "/web:1", CodeOther, "and the reference says sha256:1111"},
		"no access":                {refusing + "/web:1", imageref.CodeLogin, refusing},
		"no answer":                {strings.TrimPrefix(gone.URL, "http://") + "/web:1", imageref.CodeUnreachable, ""},
		"a directory of no layout": {"web:1=" + empty, CodeSource, "neither index.json, as an OCI layout, nor manifest.json"},
		"a file of no archive":     {"web:1=" + plain, CodeSource, "plain.tar"},
		"a compressed archive":     {"web:1=" + packed, CodeSource, "unpack it first"},
	} {
		t.Run(what, func(t *testing.T) {
			dir := newBundle(t)
			before := content(t, dir)
			_, err := add(t, Options{Dir: dir}, c.image)
			require.ErrorIs(t, err, &fault.Fault{Code: c.code}, "%v", err)
			require.ErrorContains(t, err, c.says)
			require.Equal(t, before, content(t, dir))
		})
	}

	t.Run("no bundle", func(t *testing.T) {
		_, err := add(t, Options{Dir: empty}, host+"/web:1")
		require.ErrorIs(t, err, &fault.Fault{Code: bundle.CodeAbsent})
	})
	t.Run("one of several", func(t *testing.T) {
		dir := newBundle(t)
		finished, err := add(t, Options{Dir: dir}, host+"/web:2", host+"/web:1", host+"/arm:1")
		require.ErrorIs(t, err, &fault.Fault{Code: CodeAbsent})
		require.ErrorIs(t, err, &fault.Fault{Code: CodeAbsent})
		require.Len(t, finished, 1, "the others are added")
		imageOf(t, dir, host+"/web:1")
	})
	t.Run("a bundle that cannot be written", func(t *testing.T) {
		dir := newBundle(t)
		require.NoError(t, os.WriteFile(filepath.Join(dir, bundle.AddedDir), nil, 0o600))
		_, err := add(t, Options{Dir: dir}, host+"/web:1")
		require.ErrorIs(t, err, &fault.Fault{Code: CodeWrite})
	})
}

func TestWhatIsNoRequest(t *testing.T) {
	for text, says := range map[string]string{
		"": "is no reference", "Redis": "is no reference", "redis=": "neither a directory nor a file",
		"redis=./nowhere": "neither a directory nor a file", "redis=nowhere.tar": "neither a directory nor a file", "redis=Nowhere": "there is no file of that name",
	} {
		_, err := ParseRequest(text)
		require.ErrorIs(t, err, &fault.Fault{Code: CodeAbsent}, text)
		require.ErrorContains(t, err, says)
	}
	r, err := ParseRequest("redis:8=harbor.local/hub/redis:8")
	require.NoError(t, err)
	require.Equal(t, "harbor.local", r.from())
	require.Equal(t, "registry:harbor.local/hub/redis:8", r.origin())
}

// TestWithoutANetwork: the remedy is a file.
func TestWithoutANetwork(t *testing.T) {
	dir := newBundle(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	ref := strings.TrimPrefix(gone.URL, "http://") + "/web:1"
	_, err := add(t, Options{Dir: dir}, ref)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok)
	require.Equal(t, fault.Code(imageref.CodeUnreachable), f.Code)
	require.Contains(t, f.Fix, "slipway bundle add "+dir+" "+ref+"=FILE")
}

func TestAFullDiskIsNamed(t *testing.T) {
	dir := newBundle(t)
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	a := &adder{bundle: b, guard: &registries.Guard{}}
	r, err := ParseRequest("redis:8")
	require.NoError(t, err)
	err = a.fault(r, &fs.PathError{Op: "write", Path: "x", Err: syscallENOSPC})
	require.ErrorIs(t, err, &fault.Fault{Code: CodeWrite})
	f, _ := errors.AsType[*fault.Fault](err)
	require.Contains(t, f.Fix, "make room on the disk of "+b.Dir())
	f, _ = errors.AsType[*fault.Fault](a.fault(r, unwritable(fs.ErrPermission)))
	require.Equal(t, CodeWrite, f.Code)
	require.Contains(t, f.Fix, "let this user write")
}

func TestPlainHTTPMustBeAllowed(t *testing.T) {
	host := server(t, nil)
	push(t, host+"/web:1", platform(t, "linux", "amd64"))
	o := Options{Dir: newBundle(t), Transport: elsewhere{host}}
	_, err := add(t, o, "registry.example.com:5000/web:1")
	require.ErrorIs(t, err, &fault.Fault{Code: registries.CodePlain}, "%v", err)
	o.PlainHTTP = true
	_, err = add(t, o, "registry.example.com:5000/web:1")
	require.NoError(t, err)
}

// TestAKilledAdd: the bundle verifies, has nothing more than before, and what was left is
// removed by the next call.
func TestAKilledAdd(t *testing.T) {
	if dir := os.Getenv("ACQUIRE_TEST_BUNDLE"); dir != "" { // the process that is killed
		_, err := add(t, Options{Dir: dir}, os.Getenv("ACQUIRE_TEST_IMAGE"))
		t.Fatalf("it was not killed: %v", err)
	}
	var gets atomic.Int32
	stalled := make(chan struct{})
	host := server(t, func(_ http.ResponseWriter, r *http.Request) bool {
		// The first one is the config.
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/blobs/") || gets.Add(1) != 2 {
			return false
		}
		close(stalled)
		<-r.Context().Done()
		return true
	})
	push(t, host+"/web:1", platform(t, "linux", "amd64"))
	dir := newBundle(t)
	before := content(t, dir)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAKilledAdd$")
	child.Env = append(os.Environ(), "ACQUIRE_TEST_BUNDLE="+dir, "ACQUIRE_TEST_IMAGE="+host+"/web:1")
	var out bytes.Buffer
	child.Stdout, child.Stderr = &out, &out
	require.NoError(t, child.Start())
	<-stalled
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.NotContains(t, out.String(), "it was not killed")

	verify(t, dir)
	left := content(t, dir)
	require.Greater(t, len(left), len(before), "it was in the middle of it")
	require.Equal(t, before[bundle.IndexFile], left[bundle.IndexFile])
	_, err := add(t, Options{Dir: dir}, host+"/web:1")
	require.NoError(t, err)
	imageOf(t, dir, host+"/web:1")
	require.Len(t, content(t, dir), len(before)+1, "and nothing is left")
}

func TestAnInterruptedAdd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	host := server(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			cancel()
		}
		return false
	})
	push(t, host+"/web:1", platform(t, "linux", "amd64"))
	dir := newBundle(t)
	before := content(t, dir)
	r, err := ParseRequest(host + "/web:1")
	require.NoError(t, err)
	require.ErrorIs(t, Add(ctx, Options{Dir: dir, Images: []Request{r}}), context.Canceled)
	require.Equal(t, before, content(t, dir))
}

// TestSeveralProcessesAdd: each waits for the one before, and none undoes what another did.
func TestSeveralProcessesAdd(t *testing.T) {
	host, dir := server(t, nil), newBundle(t)
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	release, err := lockBundle(t.Context(), b, nil)
	require.NoError(t, err)
	names := []string{"a", "b", "c", "d"}
	waiting := make(chan struct{}, len(names))
	var all sync.WaitGroup
	errs := make([]error, len(names))
	for n, image := range names {
		push(t, host+"/"+image+":1", platform(t, "linux", "amd64"))
		r, err := ParseRequest(host + "/" + image + ":1")
		require.NoError(t, err)
		all.Go(func() {
			errs[n] = Add(t.Context(), Options{Dir: dir, Images: []Request{r}, Waiting: func() { waiting <- struct{}{} }})
		})
	}
	for range names {
		<-waiting
	}
	release()
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	for _, image := range names {
		imageOf(t, dir, host+"/"+image+":1")
	}

	release, err = lockBundle(t.Context(), b, nil)
	require.NoError(t, err)
	defer release()
	ctx, cancel := context.WithCancel(t.Context())
	require.ErrorIs(t, Add(ctx, Options{Dir: dir, Waiting: cancel}), context.Canceled, "waiting can be interrupted")
}

// TestLockOfNoFile: a hostile bundle can have anything where a file should be, a pipe for example.
func TestLockOfNoFile(t *testing.T) {
	b, err := bundle.Read(newBundle(t))
	require.NoError(t, err)
	path := b.Path(b.Files[0].Path)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Symlink(t.TempDir(), path))
	_, err = lockBundle(t.Context(), b, nil)
	require.ErrorContains(t, err, path+" is not a regular file")
}

func push(t *testing.T, ref string, what any) {
	t.Helper()
	to, err := name.ParseReference(ref)
	require.NoError(t, err)
	switch what := what.(type) {
	case v1.Image:
		err = remote.Write(to, what)
	case v1.ImageIndex:
		err = remote.WriteIndex(to, what)
	}
	require.NoError(t, err)
}

// verify verifies the bundle in dir.
func verify(t *testing.T, dir string) {
	t.Helper()
	b, err := bundle.Read(dir)
	require.NoError(t, err)
	require.NoError(t, b.Verify(t.Context()))
}
