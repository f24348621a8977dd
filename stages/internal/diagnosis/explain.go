package diagnosis

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/stages/internal/argo"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
)

// explain determines which findings are caused by others. The rules:
//
//   - an app that waits for an unhealthy child app is caused by that app's most
//     specific finding;
//   - an unhealthy object and a failing Job are caused by their pods;
//   - a pod that cannot be scheduled, or that waits for its volumes, is caused by its
//     claim without a volume;
//   - a pod that cannot be scheduled is caused by an unhealthy node if no node is
//     healthy or the scheduler names the node's taint; a pod that is not ready on an
//     unhealthy node is caused by that node;
//   - failed name resolution is caused by the cluster DNS, if that is unhealthy;
//   - a webhook that does not respond is caused by a pod in its namespace;
//   - a workload that cannot reach another one is caused by the other's pods.
func (f *Facts) explain(all []*finding) []*finding {
	names := f.clusterDNS(all)
	for _, x := range all {
		switch {
		case fromChild(x, all), fromPods(x, all), f.fromClaim(x, all), f.fromNode(x, all), fromNames(x, names), fromWebhook(x, all):
		default:
			fromWorkload(x, all)
		}
	}
	return all
}

func fromChild(x *finding, all []*finding) bool {
	if x.child == "" {
		return false
	}
	y := mostSpecific(all, func(y *finding) bool { return y.app == x.child })
	return y != nil && x.from(y, "app "+x.child)
}

func fromPods(x *finding, all []*finding) bool {
	switch x.kind {
	case string(argo.Unhealthy), string(argo.HookFailed), string(argo.HookRuns), kindJob:
	default:
		return false
	}
	y := mostSpecific(all, func(y *finding) bool {
		return y != x && y.owner == x.owner && (y.pod != nil || y.kind == kindRefused)
	})
	return y != nil && x.from(y, "")
}

// mostSpecific returns the matching finding with the earliest kind, failed ones first;
// nil if none matches.
func mostSpecific(all []*finding, match func(*finding) bool) *finding {
	var best *finding
	order := kinds()
	for _, y := range all {
		if !match(y) {
			continue
		}
		if best == nil || cmp.Or(first(y.failed, best.failed), cmp.Compare(slices.Index(order, y.kind), slices.Index(order, best.kind))) < 0 {
			best = y
		}
	}
	return best
}

func (f *Facts) fromClaim(x *finding, all []*finding) bool {
	switch readiness.TroubleKind(x.kind) {
	case readiness.TroubleSchedule, readiness.TroubleVolume, readiness.TroubleStarting:
	default:
		return false
	}
	if x.pod == nil {
		return false
	}
	for _, v := range x.pod.Spec.Volumes {
		if v.PersistentVolumeClaim == nil {
			continue
		}
		for _, y := range all {
			if y.kind == kindClaim && y.object.namespace == x.pod.Namespace && y.object.name == v.PersistentVolumeClaim.ClaimName {
				if y.app == "" {
					y.app, y.wave = x.app, x.wave
				}
				return x.from(y, "")
			}
		}
	}
	return false
}

func (f *Facts) fromNode(x *finding, all []*finding) bool {
	if x.pod == nil {
		return false
	}
	var bad []*finding
	for _, y := range all {
		if y.kind == kindNode {
			bad = append(bad, y)
		}
	}
	if len(bad) == 0 {
		return false
	}
	switch readiness.TroubleKind(x.kind) {
	case readiness.TroubleSchedule:
		well := slices.ContainsFunc(f.Nodes, func(n corev1.Node) bool {
			return !slices.ContainsFunc(bad, func(y *finding) bool { return y.object.name == n.Name })
		})
		if !well || strings.Contains(x.text, "{node.kubernetes.io/") {
			return x.from(bad[0], "")
		}
	case readiness.TroubleUnready, readiness.TroubleStarting, readiness.TroubleNetwork, readiness.TroubleVolume, readiness.TroubleEvicted:
		for _, y := range bad {
			if y.object.name == x.pod.Spec.NodeName {
				return x.from(y, "")
			}
		}
	}
	return false
}

// unresolved matches messages of programs that cannot resolve a name.
var unresolved = regexp.MustCompile(`(?i)lookup \S+.*(no such host|server misbehaving|i/o timeout|connection refused|network is unreachable)|` +
	`temporary failure in name resolution|could not resolve host|name or service not known|getaddrinfo|EAI_AGAIN|ENOTFOUND|UnknownHostException|failure in name resolution`)

func (x *finding) matches(re *regexp.Regexp) bool {
	return re.MatchString(x.text) || slices.ContainsFunc(x.log, re.MatchString)
}

// clusterDNS returns the finding about the cluster DNS; nil if it is
// healthy.
func (f *Facts) clusterDNS(all []*finding) *finding {
	isDNS := func(p *corev1.Pod) bool {
		return p.Namespace == "kube-system" && (p.Labels["k8s-app"] == "kube-dns" || strings.HasPrefix(p.Name, "coredns"))
	}
	for _, x := range all {
		if x.pod != nil && isDNS(x.pod) || x.kind == kindRefused && x.object.namespace == "kube-system" && x.object.name == "coredns" {
			return x
		}
	}
	if f.Pods != nil && !slices.ContainsFunc(f.Pods, func(p corev1.Pod) bool { return isDNS(&p) }) {
		return &finding{kind: string(readiness.TroubleUnready), text: "the cluster DNS has no pod", failed: true}
	}
	return nil
}

func fromNames(x, names *finding) bool {
	if names == nil || x == names || !x.matches(unresolved) {
		return false
	}
	return x.from(names, "names cannot be resolved")
}

func fromWebhook(x *finding, all []*finding) bool {
	if x.service == nil {
		return false
	}
	for _, y := range all {
		if y != x && y.pod != nil && y.object.namespace == x.service.Namespace {
			through, _, _ := strings.Cut(x.text, " does not answer")
			return x.from(y, through+" does not answer")
		}
	}
	return false
}

// unreached matches messages of programs that cannot reach another one.
var unreached = regexp.MustCompile(`(?i)refused|no such host|time(d )?\s?out|no route|unreachable|unavailable|no endpoints|reset by peer|lookup|deadline exceeded|50[234]\b`)

// fromWorkload finds the workload that x cannot reach.
func fromWorkload(x *finding, all []*finding) {
	if readiness.TroubleKind(x.kind) != readiness.TroubleCrash && readiness.TroubleKind(x.kind) != readiness.TroubleUnready &&
		readiness.TroubleKind(x.kind) != readiness.TroubleProbe && x.kind != string(argo.Unreadable) && x.kind != string(argo.SyncFailed) {
		return
	}
	texts := append([]string{x.text}, x.log...)
	texts = slices.DeleteFunc(texts, func(text string) bool { return !unreached.MatchString(text) })
	for _, near := range []bool{true, false} {
		for _, y := range all {
			if y == x || y.pod == nil || y.owner == x.owner || near != (y.owner.namespace == x.owner.namespace) {
				continue
			}
			if slices.ContainsFunc(texts, func(text string) bool { return reaches(text, y.owner) }) && x.from(y, y.owner.name+" does not answer") {
				return
			}
		}
	}
}

// reaches reports whether text names a workload as a host: "database:5432",
// "lookup database", "https://gitea.gitea.svc".
func reaches(text string, o object) bool {
	if !strings.Contains(text, o.name) {
		return false // the common case
	}
	host := regexp.QuoteMeta(o.name) + `(\.` + regexp.QuoteMeta(o.namespace) + `[\w.-]*)?`
	return regexp.MustCompile(`(^|[\s/@"'=([])` + host + `(:\d+|/)|(lookup |host |://)` + host + `([\s:"'/,]|$)`).MatchString(text)
}

// from records that x is caused by y, unless y is caused by x already.
func (x *finding) from(y *finding, through string) bool {
	for z := y; z != nil; z = z.root {
		if z == x {
			return false
		}
	}
	x.root, x.through = y, through
	return true
}

// origin follows x to its root cause. through describes the way there, in clauses.
func (x *finding) origin() (root *finding, through []string) {
	for ; x.root != nil; x = x.root {
		if x.through != "" {
			through = append(through, x.through)
		}
	}
	return x, through
}
