// Package buckets opens stores in buckets: of S3, in containers of Azure Blob Storage, and in
// buckets of Google Cloud Storage.
package buckets

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"
	"gocloud.dev/blob/gcsblob"
	"gocloud.dev/blob/s3blob"
	"gocloud.dev/gcp"
	"golang.org/x/oauth2"
	"google.golang.org/api/googleapi"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// All are the kinds of buckets, by the scheme of their URLs.
func All() map[string]store.Opener {
	return map[string]store.Opener{"s3": S3{}, "azblob": Azure{}, "gs": Google{}}
}

// isRefused reports whether a status means that the credentials are missing, wrong or insufficient.
func isRefused(status int) bool {
	return status == http.StatusUnauthorized || status == http.StatusForbidden
}

// S3 opens URLs such as s3://bucket?region=eu-central-1, also of servers that speak its protocol,
// which must honour If-None-Match on writes as AWS does. Further parameters are those of gocloud.dev/blob/s3blob, such as endpoint, use_path_style and
// profile. Credentials come from the AWS SDK's usual places.
type S3 struct{}

// OpenBucketURL opens the bucket that u names. It makes no requests unless credentials
// have to be fetched.
func (S3) OpenBucketURL(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	return new(s3blob.URLOpener).OpenBucketURL(ctx, u)
}

// Kind implements store.Opener.
func (S3) Kind(err error) store.Kind {
	var api interface{ ErrorCode() string } // the SDK's errors for responses of the API
	if errors.As(err, &api) {
		switch api.ErrorCode() {
		case "NoSuchKey", "NotFound": // the latter for HEAD, whose response has no body
			return store.Absent
		case "PreconditionFailed":
			return store.Exists
		case "ConditionalRequestConflict", "OperationAborted":
			return store.Busy
		case "NoSuchBucket", "PermanentRedirect":
			return store.NoBucket
		case "AccessDenied", "Forbidden", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken",
			"TokenRefreshRequired", "RequestTimeTooSkewed", "AccountProblem", "AllAccessDisabled", "InvalidClientTokenId", "XAdminUserNotFound": // the last is VersityGW's
			return store.Refused
		}
	}
	var r interface{ HTTPStatusCode() int }
	if errors.As(err, &r) && isRefused(r.HTTPStatusCode()) {
		return store.Refused
	}
	// The SDK has no error type for missing credentials.
	if strings.Contains(err.Error(), "get credentials:") || strings.Contains(err.Error(), "failed to refresh cached credentials") {
		return store.Refused
	}
	return store.Other
}

// Credentials implements store.Opener.
func (S3) Credentials() []string {
	return []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
}

// Azure opens URLs such as azblob://container?storage_account=name. Further
// parameters are those of gocloud.dev/blob/azureblob. The account and the
// credentials come from the variables AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY,
// AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING, else from where
// Azure's default credential looks.
type Azure struct{}

// OpenBucketURL opens the container that u names, without connecting to it.
func (Azure) OpenBucketURL(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	// The token is sent wherever requests go, so the URL must not choose the account.
	if os.Getenv("AZURE_STORAGE_SAS_TOKEN") != "" && u.RawQuery != "" {
		return nil, errors.New("with AZURE_STORAGE_SAS_TOKEN the account is given by variables, too, and not by parameters of the URL")
	}
	o := &azureblob.URLOpener{
		MakeClient:        azureblob.NewDefaultClient,
		ServiceURLOptions: *azureblob.NewDefaultServiceURLOptions(),
	}
	return o.OpenBucketURL(ctx, u)
}

// Kind implements store.Opener.
func (Azure) Kind(err error) store.Kind {
	switch {
	case bloberror.HasCode(err, bloberror.BlobNotFound):
		return store.Absent
	case bloberror.HasCode(err, bloberror.BlobAlreadyExists, bloberror.ConditionNotMet, bloberror.TargetConditionNotMet):
		return store.Exists
	case bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted, bloberror.ContainerDisabled):
		return store.NoBucket
	case bloberror.HasCode(err, bloberror.AuthenticationFailed, bloberror.AuthorizationFailure,
		bloberror.AuthorizationPermissionMismatch, bloberror.InsufficientAccountPermissions, bloberror.NoAuthenticationInformation):
		return store.Refused
	}
	if r, ok := errors.AsType[*azcore.ResponseError](err); ok && isRefused(r.StatusCode) {
		return store.Refused
	}
	// The SDK's error types for missing or rejected credentials are internal.
	if strings.Contains(err.Error(), "DefaultAzureCredential") {
		return store.Refused
	}
	return store.Other
}

// Credentials implements store.Opener.
func (Azure) Credentials() []string {
	return []string{
		"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN",
		"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET",
	}
}

// Google opens URLs such as gs://bucket. Further parameters are those of
// gocloud.dev/blob/gcsblob. The credentials are Google's application default
// credentials.
type Google struct{}

// errCredentials means that no credentials were found.
var errCredentials = errors.New("no application default credentials")

// OpenBucketURL opens the bucket that u names, without connecting to it.
func (Google) OpenBucketURL(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
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

// Kind implements store.Opener.
func (Google) Kind(err error) store.Kind {
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

// Credentials implements store.Opener.
func (Google) Credentials() []string { return []string{"GOOGLE_APPLICATION_CREDENTIALS"} }
