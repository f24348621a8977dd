package buckets

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// GoogleStorage opens URLs such as gs://bucket. Further parameters are those of
// gocloud.dev/blob/gcsblob. The credentials are Google's application default
// credentials.
type GoogleStorage struct{}

// errCredentials means that no credentials were found.
var errCredentials = errors.New("no application default credentials")

// OpenBucketURL opens the bucket that u names, without connecting to it.
func (GoogleStorage) OpenBucketURL(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	if u.Query().Get("anonymous") == "true" {
		return (&gcsblob.URLOpener{}).OpenBucketURL(ctx, u)
	}
	creds, err := gcp.DefaultCredentials(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errCredentials, err)
	}
	client, err := gcp.NewHTTPClient(gcp.DefaultTransport(), creds.TokenSource)
	if err != nil {
		return nil, err
	}
	return (&gcsblob.URLOpener{Client: client}).OpenBucketURL(ctx, u)
}

// Kind classifies an error of a bucket.
func (GoogleStorage) Kind(err error) store.Kind {
	switch {
	case errors.Is(err, storage.ErrObjectNotExist):
		return store.Absent
	case errors.Is(err, storage.ErrBucketNotExist):
		return store.NoBucket
	case errors.Is(err, errCredentials):
		return store.Refused
	}
	if _, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		return store.Refused
	}
	if api, ok := errors.AsType[*googleapi.Error](err); ok {
		switch api.Code {
		case http.StatusPreconditionFailed:
			return store.Exists
		case http.StatusUnauthorized, http.StatusForbidden:
			return store.Refused
		case http.StatusConflict:
			return store.Busy
		case http.StatusNotFound:
			return store.NoBucket // for an object the client returns ErrObjectNotExist
		}
	}
	return store.Other
}

// Credentials returns the variable that may name a file with credentials.
func (GoogleStorage) Credentials() []string { return []string{"GOOGLE_APPLICATION_CREDENTIALS"} }
