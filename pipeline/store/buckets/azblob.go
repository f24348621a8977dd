package buckets

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"gocloud.dev/blob"
	"gocloud.dev/blob/azureblob"

	"github.com/slipway-sh/slipway/pipeline/store"
)

// AzureBlob opens URLs such as azblob://container?storage_account=name. Further
// parameters are those of gocloud.dev/blob/azureblob. The account and the
// credentials come from the variables AZURE_STORAGE_ACCOUNT, AZURE_STORAGE_KEY,
// AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_CONNECTION_STRING, else from where
// Azure's default credential looks.
type AzureBlob struct{}

// OpenBucketURL opens the container that u names, without connecting to it.
func (AzureBlob) OpenBucketURL(ctx context.Context, u *url.URL) (*blob.Bucket, error) {
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

// Kind classifies an error of a container.
func (AzureBlob) Kind(err error) store.Kind {
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
	if r, ok := errors.AsType[*azcore.ResponseError](err); ok &&
		(r.StatusCode == http.StatusUnauthorized || r.StatusCode == http.StatusForbidden) {
		return store.Refused
	}
	// The SDK's error types for missing or rejected credentials are internal.
	if strings.Contains(err.Error(), "DefaultAzureCredential") {
		return store.Refused
	}
	return store.Other
}

// Credentials returns the variables that may hold credentials.
func (AzureBlob) Credentials() []string {
	return []string{
		"AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN",
		"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET",
	}
}
