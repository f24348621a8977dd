package kube

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/fault"
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

// rejected gives the errors that somebody must act on a code of their own. live is the
// object in the cluster; nil if there is none.
func rejected(what string, live *unstructured.Unstructured, err error) error {
	cause := err
	if inner := errors.Unwrap(err); inner != nil && err.Error() == what+": "+inner.Error() {
		cause = inner // the fault says what was attempted
	}
	if !Refused(err) {
		return err
	}
	return &fault.Fault{
		Code: CodeRejected, Class: fault.Step, Op: what, Err: cause,
		Fix: remedy(live, err) + ", then run the same command again",
	}
}

// Refused reports whether the API server refuses a request for good: trying again changes
// nothing.
func Refused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsNotFound(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err) || meta.IsNoMatchError(err) || untyped(err)
}

// fixed is how the API server says that a field of an object keeps its first value.
var fixed = regexp.MustCompile(`(?i)immutable|may not change|may not be changed|cannot change|can not change|updates to \S+ spec for fields other than|can not be less than status.capacity|cannot be updated`)

// remedy says what to do about an object that the API server refuses.
func remedy(live *unstructured.Unstructured, err error) string {
	if live == nil || !apierrors.IsInvalid(err) || !fixed.MatchString(err.Error()) {
		return "correct the manifest"
	}
	how, why := "", ""
	switch m := MemberOf(live); {
	case m.HasData():
		return "give the field in the manifest the value that the object has: its data would go with the object"
	case m.MakesClaims(): // its pods and claims stay
		how, why = " --cascade=orphan", "; its pods and their volumes stay, and the new one takes them over"
	}
	resource := strings.ToLower(live.GetKind())
	if group := live.GroupVersionKind().Group; group != "" {
		resource += "." + live.GroupVersionKind().Version + "." + group
	}
	namespace := ""
	if live.GetNamespace() != "" {
		namespace = " -n " + live.GetNamespace()
	}
	return fmt.Sprintf("give the field in the manifest the value that the object has, or have the object made again (slipway toolchain -- kubectl delete%s %s %s%s%s)",
		namespace, fault.Quote(resource), fault.Quote(live.GetName()), how, why)
}
