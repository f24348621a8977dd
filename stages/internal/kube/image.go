package kube

import (
	"regexp"
	"strings"

	"github.com/slipway-sh/slipway/imageref"
	"github.com/slipway-sh/slipway/imageref/refused"
)

// bundled is the host in the references of a bundle's images. There is no such registry: a
// node of Slipway's own has them, or asks the registry that it was given.
const bundled = "slipway.local/"

var unknownHost = regexp.MustCompile(`lookup ([^\s:]+)[^:]*(?::\d+)?: no such host`)

// isImage tells whether a container waits for its image.
func isImage(reason string) bool {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable", "InvalidImageName", "ImageInspectError":
		return true
	}
	return false
}

// noImage says in one line which image cannot be had and why: "image docker.io/x:1 not found
// (REG-007)", with the code under which slipway explain has the remedy. message is what the
// kubelet says of it.
func noImage(image, reason, message string) string {
	return "image " + shortImage(image) + " " + whyNoImage(image, reason, message)
}

func whyNoImage(image, reason, message string) string {
	switch reason {
	case "InvalidImageName":
		return "has no valid name"
	case "ErrImageNeverPull":
		return "is not on the node, and its pull policy forbids pulling it"
	}
	if m := unknownHost.FindStringSubmatch(message); m != nil && m[1]+"/" != bundled {
		return "not found (no such host: " + m[1] + ")"
	}
	complete, _ := imageref.Normal(image) // what is no reference stands in no message
	why := refused.Read(message, complete)
	code := " (" + why.Code() + ")"
	switch why {
	case refused.Absent:
		return "not found" + code
	case refused.Login:
		return "refused by its registry" + code
	case refused.Certificate:
		return "cannot be pulled: the certificate of its registry is not trusted" + code
	case refused.Limit:
		return "cannot be pulled now: its registry limits how often" + code
	case refused.Proxy:
		return "cannot be pulled: a proxy between does not let it through" + code
	}
	switch {
	case strings.HasPrefix(image, bundled) && (why == refused.Unknown || unknownHost.MatchString(message)):
		return "not found"
	case message == "" || !strings.Contains(message, ": "): // Back-off pulling image "x"
		return "cannot be pulled"
	}
	return "cannot be pulled: " + Short(lastPart(OneLine(message)), 200)
}

// shortImage leaves twelve digits of a digest.
func shortImage(ref string) string {
	name, digest, ok := strings.Cut(ref, "@sha256:")
	if !ok || len(digest) <= 12 {
		return ref
	}
	return name + "@sha256:" + digest[:12] + "…"
}
