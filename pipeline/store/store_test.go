package store_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/blob/fileblob"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/pipeline/store"
	"github.com/slipway-sh/slipway/pipeline/store/buckets"
)

func open(t *testing.T, url string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), url, store.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestConformance_directory(t *testing.T) {
	conform(t, suite{
		open:  func(t *testing.T) *store.Store { return open(t, "file://"+filepath.Join(t.TempDir(), "made", "here")) },
		again: func(t *testing.T, first *store.Store) *store.Store { return open(t, first.Location()) },
		many:  300,
	})
}

func TestConformance_directoryWithPrefix(t *testing.T) {
	conform(t, suite{
		open: func(t *testing.T) *store.Store { return open(t, "file://"+t.TempDir()+"?prefix=a/b/") },
		many: 50,
	})
}

func TestConformance_memory(t *testing.T) {
	conform(t, suite{open: func(t *testing.T) *store.Store { return open(t, "mem://") }})
}

// TestConformance_server runs on the bucket of a server that ci/test/s3 starts.
func TestConformance_server(t *testing.T) {
	bucketURL := os.Getenv("SLIPWAY_TEST_BUCKET")
	if bucketURL == "" {
		t.Skip("SLIPWAY_TEST_BUCKET names no bucket")
	}
	var url string
	again := func(t *testing.T) *store.Store {
		s, err := store.Open(t.Context(), url, store.Options{Openers: buckets.All()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
	stores := 0
	conform(t, suite{
		open: func(t *testing.T) *store.Store {
			var err error
			url, err = store.Below(bucketURL, fmt.Sprintf("store-%d", stores))
			require.NoError(t, err)
			stores++
			return again(t)
		},
		again: func(t *testing.T, _ *store.Store) *store.Store { return again(t) },
	})
}

// TestDirectory_layout: a directory is what fileblob makes of the same keys, so
// that other tools of gocloud.dev read it.
func TestDirectory_layout(t *testing.T) {
	dir := t.TempDir()
	s := open(t, "file://"+dir)
	require.NoError(t, s.Put(t.Context(), "a/b@c=d+e.json", []byte("ours")))
	other, err := fileblob.OpenBucket(dir, &fileblob.Options{Metadata: fileblob.MetadataDontWrite, NoTempDir: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, other.Close()) }()
	got, err := other.ReadAll(t.Context(), "a/b@c=d+e.json")
	require.NoError(t, err)
	require.Equal(t, "ours", string(got))
	require.NoError(t, other.WriteAll(t.Context(), "a/theirs", []byte("theirs"), nil))
	got, err = s.Get(t.Context(), "a/theirs")
	require.NoError(t, err)
	require.Equal(t, "theirs", string(got))
	info, err := os.Stat(filepath.Join(dir, "a/b@c=d+e.json"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

// refusing is a kind of bucket whose errors contain secrets.
type refusing struct{ err error }

func (r refusing) OpenBucketURL(context.Context, *url.URL) (*blob.Bucket, error) { return nil, r.err }
func (refusing) Kind(error) store.Kind                                           { return store.Refused }
func (refusing) Credentials() []string                                           { return []string{"KEY"} }

func TestOpen_badURLs(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "verysecretvalue")
	opts := store.Options{Openers: map[string]store.Opener{"s3": refusing{errors.New("x")}}}
	for bad, says := range map[string]string{
		"":                         `no buckets of kind ""`,
		"relative/path":            `no buckets of kind ""`,
		"gs://bucket":              `no buckets of kind "gs"`,
		"file://host/dir":          "want file:///directory",
		"file:relative":            "want file:///directory",
		"file:///dir?create_dir=1": "want file:///directory",
		"s3://":                    "want s3://bucket",
		"s3://bucket/key":          "want s3://bucket",
		"s3://AKIAABCDEFGHIJKLMNOP:verysecretvalue@bucket": "credentials do not belong in it",
		"s3://bucket?prefix=../up":                         "is not a valid key",
		"s3://bucket?prefix=a&prefix=b":                    "given twice",
		"s3://verysecretvalue:%zz":                         "invalid",
		"s3://bucket?a;verysecretvalue":                    "semicolon",
	} {
		_, err := store.Open(t.Context(), bad, opts)
		require.ErrorIs(t, err, &fault.Fault{Code: store.CodeURL}, bad)
		require.Equal(t, fault.Usage, fault.ClassOf(err), bad)
		require.ErrorContains(t, err, says, bad)
		require.NotContains(t, err.Error(), "verysecretvalue", bad)
		require.NotContains(t, err.Error(), "AKIA", bad)
		f, _ := errors.AsType[*fault.Fault](err)
		require.Contains(t, f.Fix, "s3://bucket")
	}
}

func TestOpen_refused(t *testing.T) {
	t.Setenv("AZURE_STORAGE_KEY", "verysecretvalue")
	cause := errors.New(`GET https://user:pw123@host/x?sv=1&sig=abc%2Fdef&se=2 "AccountKey=k3y;x" Authorization: Bearer tok.en-value X-Amz-Signature=feed verysecretvalue AKIAABCDEFGHIJKLMNOP`)
	_, err := store.Open(t.Context(), "s3://bucket?prefix=a", store.Options{Openers: map[string]store.Opener{"s3": refusing{cause}}})
	require.ErrorIs(t, err, &fault.Fault{Code: store.CodeRefused})
	require.Equal(t, fault.Preflight, fault.ClassOf(err))
	require.NotErrorIs(t, err, cause, "the SDK's error is not wrapped")
	require.ErrorContains(t, err, "open s3://bucket/a")
	require.ErrorContains(t, err, "sv=1")
	for _, secret := range []string{"pw123", "abc", "k3y", "tok.en-value", "feed", "verysecretvalue", "AKIA"} {
		require.NotContains(t, err.Error(), secret)
	}
}

func TestLocation(t *testing.T) {
	dir := t.TempDir()
	s := open(t, "file://"+dir+"?prefix=a")
	require.Equal(t, "file://"+dir+"/a", s.Location())
	sub, err := s.Sub("b/c")
	require.NoError(t, err)
	require.Equal(t, "file://"+dir+"/a/b/c", sub.Location())
}

func TestCheckURL(t *testing.T) {
	opts := store.Options{Openers: map[string]store.Opener{"s3": refusing{errors.New("x")}}}
	variables, err := store.CheckURL("s3://bucket?region=eu-central-1&prefix=a/b", opts)
	require.NoError(t, err)
	require.Equal(t, []string{"KEY"}, variables)
	for bad, says := range map[string]string{
		"file:///directory": `no buckets of kind "file"`, "mem://": `no buckets of kind "mem"`, "gs://b": `no buckets of kind "gs"`,
		"s3://": "want s3://bucket", "s3://me:hunter2@bucket": "credentials do not belong in it", "s3://b?prefix=../x": "is not a valid key",
	} {
		_, err := store.CheckURL(bad, opts)
		require.ErrorIs(t, err, &fault.Fault{Code: store.CodeURL}, bad)
		require.ErrorContains(t, err, says, bad)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestBelow(t *testing.T) {
	for url, want := range map[string]string{
		"s3://bucket":                          "s3://bucket?prefix=blue",
		"s3://bucket?region=x&prefix=a/b/":     "s3://bucket?prefix=a%2Fb%2Fblue&region=x",
		"azblob://container?storage_account=y": "azblob://container?prefix=blue&storage_account=y",
	} {
		got, err := store.Below(url, "blue")
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err := store.Below("s3://bucket", "../blue")
	require.ErrorIs(t, err, &fault.Fault{Code: store.CodeURL})
}

func TestPreflight(t *testing.T) {
	plain := errors.New("x")
	require.Equal(t, plain, store.Preflight(plain))
	held := &fault.Fault{Code: "LOK-001", Class: fault.Locked}
	require.Equal(t, error(held), store.Preflight(held))
	require.Equal(t, fault.Preflight, fault.ClassOf(store.Preflight(&fault.Fault{Code: store.CodeRefused, Class: fault.Step})))
}

// TestFenced: who has lost the right to write reads on, and writes nothing.
func TestFenced(t *testing.T) {
	s, err := store.Open(t.Context(), "mem://", store.Options{})
	require.NoError(t, err)
	lost := &fault.Fault{Code: "LOK-002", Class: fault.Locked, Err: errors.New("somebody else has it")}
	var no error
	fenced := s.Fenced(func(context.Context) error { return no })
	sub, err := fenced.Sub("sub")
	require.NoError(t, err)
	for _, s := range []*store.Store{fenced, sub} {
		no = nil
		require.NoError(t, s.Put(t.Context(), "a", []byte("1")))
		no = lost
		for what, err := range map[string]error{
			"write a":  s.Put(t.Context(), "a", []byte("2")),
			"create b": s.Create(t.Context(), "b", nil),
			"delete a": s.Delete(t.Context(), "a"),
		} {
			require.ErrorIs(t, err, lost)
			require.ErrorContains(t, err, what+" in mem:")
		}
		data, err := s.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, "1", string(data))
		keys, err := s.List(t.Context(), "")
		require.NoError(t, err)
		require.NotContains(t, keys, "b")
	}
	require.NoError(t, s.Put(t.Context(), "a", []byte("2")), "others are not bound")
}
