package buckets

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// S3 opens URLs such as s3://bucket?region=eu-central-1, in S3 and in servers that speak
// its protocol, which must honour If-None-Match on writes, as AWS does. Further parameters
// are those of gocloud.dev/blob/s3blob, such as endpoint, use_path_style and
// profile. Credentials come from the AWS SDK's usual places.
type S3 struct{}

// OpenBucketURL opens the bucket that u names. It makes no requests unless credentials
// have to be fetched.
func (S3) OpenBucketURL(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
	return new(s3blob.URLOpener).OpenBucketURL(ctx, u)
}

// apiError is implemented by the SDK's errors for responses of the API.
type apiError interface{ ErrorCode() string }

// response is implemented by the SDK's errors for HTTP responses.
type response interface{ HTTPStatusCode() int }

// Kind classifies an error of a bucket.
func (S3) Kind(err error) store.Kind {
	var api apiError
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
	var r response
	if errors.As(err, &r) && (r.HTTPStatusCode() == http.StatusUnauthorized || r.HTTPStatusCode() == http.StatusForbidden) {
		return store.Refused
	}
	// The SDK has no error type for missing credentials.
	if strings.Contains(err.Error(), "get credentials:") || strings.Contains(err.Error(), "failed to refresh cached credentials") {
		return store.Refused
	}
	return store.Other
}

// Credentials returns the variables that may hold credentials.
func (S3) Credentials() []string {
	return []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"}
}
