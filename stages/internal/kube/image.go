package kube

import (
	"regexp"
	"strings"
)

// bundled is the host in the references of a bundle's images. There is no such
// registry: an image that has to be pulled from it is not in the bundle.
const bundled = "slipway.local/"

var (
	unknownHost = regexp.MustCompile(`lookup ([^\s:]+)[^:]*(?::\d+)?: no such host`)
	notAllowed  = regexp.MustCompile(`unauthorized|denied|\b40[13]\b`)
)

// isImage tells whether a container waits for its image.
func isImage(reason string) bool {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "RegistryUnavailable", "InvalidImageName", "ImageInspectError":
		return true
	}
	return false
}

// noImage says in one line which image cannot be had and why: "image
// docker.io/x:1 not found". message is what the kubelet says of it.
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
	if strings.HasPrefix(image, bundled) {
		return "not found"
	}
	if m := unknownHost.FindStringSubmatch(message); m != nil {
		return "not found (no such host: " + m[1] + ")"
	}
	for _, absent := range []string{"not found", "NotFound", "name unknown", "manifest unknown"} {
		if strings.Contains(message, absent) {
			return "not found"
		}
	}
	switch {
	case strings.Contains(message, "toomanyrequests"):
		return "cannot be pulled now: its registry limits how often"
	case notAllowed.MatchString(message):
		return "refused by its registry"
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
