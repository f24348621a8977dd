package registries

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/imageref"
)

// probeLimit is how long a registry may take to say that it has an image.
const probeLimit = time.Minute

// Probe asks the registry for an image by its URL, https://host/path@sha256:…, with the account
// in file if that is not empty. Its fault has the code of why the registry gives none, within
// a minute.
func Probe(ctx context.Context, url, file string, next http.RoundTripper) error {
	scheme, ref, _ := strings.Cut(url, "://")
	options := []name.Option{name.StrictValidation}
	if scheme == "http" {
		options = append(options, name.Insecure)
	}
	image, err := name.NewDigest(ref, options...)
	if err != nil {
		return err
	}
	keychain := authn.NewMultiKeychain()
	if file != "" {
		if keychain, err = read(file); err != nil {
			return unreadable("read the registry's account", "give a file as docker's config.json: --registry-auth FILE", err)
		}
	}
	limited, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	_, err = remote.Head(image, remote.WithContext(limited), remote.WithAuthFromKeychain(keychain),
		remote.WithTransport(&Guard{Next: next, Allow: scheme == "http"}))
	if err == nil || ctx.Err() != nil {
		return err
	}
	status := 0
	if answer, ok := errors.AsType[*transport.Error](err); ok {
		status = answer.StatusCode
	}
	registry := image.Context().RegistryStr()
	reason := imageref.RequestReason(err, registry, status)
	if reason == imageref.Unknown && status == 0 {
		reason = imageref.ReadReason(err.Error(), registry)
	}
	return &fault.Fault{Code: fault.Code(reason.Code()), Class: fault.Preflight, Op: "pull from " + registry + " as the cluster's node does", Err: err,
		Fix: reason.Remedy(imageref.Engine, ref[:strings.LastIndexByte(ref, '/')])}
}
