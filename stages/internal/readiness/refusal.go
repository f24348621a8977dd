package readiness

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/slipway-sh/slipway/imageref"
)

// Refusal is why the API server did not take an object.
type Refusal struct {
	Text string // in one line, without the object's name
	// Namespace and Service are those of a webhook that did not answer; empty
	// when that is not the matter.
	Namespace, Service string
}

// The forms of messages that are told in other words.
var (
	webhookSilent  = regexp.MustCompile(`failed calling webhook "([^"]+)": (.*)$`)
	webhookRefuses = regexp.MustCompile(`admission webhook "([^"]+)" denied the request:? ?(.*)$`)
	webhookService = regexp.MustCompile(`https://([a-z0-9-]+)\.([a-z0-9-]+)\.svc`)
	quotaUsedUp    = regexp.MustCompile(`exceeded quota: ([^,]+), requested: (.*), used: (.*), limited: (.*)$`)
	kindNotFound   = regexp.MustCompile(`could not find (\S+)/(\S+) for requested resource`)
	kindNoMatch    = regexp.MustCompile(`no matches for kind "([^"]+)" in version "([^"/]+)/[^"]+"`)
)

// What is around a message and does not say why.
var (
	retried   = regexp.MustCompile(` ?(\(retried \d+ times?\)|Retrying attempt #\d+ at [0-9:]+[AP]M)\.?$`)
	creating  = regexp.MustCompile(`(one or more objects failed to apply, reason: |^Error creating: |^create Pod \S+ in StatefulSet \S+ failed error: )`)
	forbidden = regexp.MustCompile(`^\S+ "[^"]*" is (forbidden|invalid): `)
)

// ReadRefusal tells what a message of the API server, or of who passes it on, means: a
// webhook that refuses or does not answer, a quota that is used up, a kind that the cluster
// does not know. Other messages stay as they are, but for the frame around them.
func ReadRefusal(message string) Refusal {
	msg := retried.ReplaceAllString(OneLine(message), "")
	if m := webhookSilent.FindStringSubmatch(msg); m != nil {
		r := Refusal{Text: fmt.Sprintf("webhook %s does not answer: %s", m[1], lastPart(m[2]))}
		if s := webhookService.FindStringSubmatch(m[2]); s != nil {
			r.Service, r.Namespace = s[1], s[2]
		}
		return r
	}
	if m := webhookRefuses.FindStringSubmatch(msg); m != nil {
		return Refusal{Text: strings.TrimSuffix(fmt.Sprintf("webhook %s refuses it: %s", m[1], m[2]), ": ")}
	}
	if m := quotaUsedUp.FindStringSubmatch(msg); m != nil {
		return Refusal{Text: fmt.Sprintf("quota %s is used up (requested %s, used %s, limit %s)", m[1], m[2], m[3], m[4])}
	}
	if m := kindNotFound.FindStringSubmatch(msg); m != nil {
		return Refusal{Text: noSuchKind(m[2], m[1])}
	}
	if m := kindNoMatch.FindStringSubmatch(msg); m != nil {
		return Refusal{Text: noSuchKind(m[1], m[2])}
	}
	msg = creating.ReplaceAllString(msg, "")
	return Refusal{Text: forbidden.ReplaceAllString(msg, "")}
}

func noSuchKind(kind, group string) string {
	return fmt.Sprintf("the cluster does not know the kind %s of %s: its CRD is missing", kind, group)
}

// maxText is how many characters of a message go into a sentence.
const maxText = 400

// OneLine makes one line of 400 characters at most of a message and drops the
// frame that remote calls put around it.
func OneLine(s string) string {
	if i := strings.LastIndex(s, "desc = "); i >= 0 {
		s = s[i+len("desc = "):]
	}
	return flat(s)
}

// flat makes one line of 400 characters at most of a text.
func flat(s string) string { return Short(strings.Join(strings.Fields(s), " "), maxText) }

// Short is s, or its first characters where it has more than most.
func Short(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

// lastPart is what a chain of wrapped errors ends with.
func lastPart(s string) string {
	parts := strings.Split(s, ": ")
	return strings.TrimSpace(parts[len(parts)-1])
}

// bundled is the host in the references of a bundle's images. There is no such registry: a
// node of Slipway's own has them, or asks the registry that it was given.
const bundled = "slipway.local/"

var unknownHost = regexp.MustCompile(`lookup ([^\s:]+)[^:]*(?::\d+)?: no such host`)

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
	why := imageref.ReadReason(message, complete)
	code := " (" + why.Code() + ")"
	switch why {
	case imageref.Absent:
		return "not found" + code
	case imageref.Login:
		return "refused by its registry" + code
	case imageref.Certificate:
		return "cannot be pulled: the certificate of its registry is not trusted" + code
	case imageref.Limit:
		return "cannot be pulled now: its registry limits how often" + code
	case imageref.Proxy:
		return "cannot be pulled: a proxy between does not let it through" + code
	}
	switch {
	case strings.HasPrefix(image, bundled) && (why == imageref.Unknown || unknownHost.MatchString(message)):
		return "not found"
	case message == "" || !strings.Contains(message, ": "): // Back-off pulling image "x"
		return "cannot be pulled"
	}
	return "cannot be pulled: " + Short(lastPart(OneLine(message)), 200)
}

func shortImage(ref string) string {
	name, digest, ok := strings.Cut(ref, "@sha256:")
	if !ok || len(digest) <= 12 {
		return ref
	}
	return name + "@sha256:" + digest[:12] + "…"
}
