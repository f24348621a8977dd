package component

import (
	"bytes"
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/installed"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/plan"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// serviceSoon is how long a Service may take to appear: components that do not come after
// each other are installed at the same time.
const serviceSoon = 5 * time.Minute

// noAddress stands in a plan for the address of a Service that is not there yet.
const noAddress = "192.0.2.1"

// hosts are the addresses in the cluster of what the component's pods resolve, by host.
func (i *installer) hosts(ctx context.Context) (map[string]string, error) {
	out := map[string]string{}
	for host, service := range i.in.Hosts {
		namespace, name, _ := strings.Cut(service, "/")
		var err error
		if out[host], err = i.clusterIP(ctx, namespace, name); errors.Is(err, plan.ErrLater) {
			out[host] = noAddress
			i.client.Plan.Label(noAddress, contract.NotKnown)
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (i *installer) clusterIP(ctx context.Context, namespace, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, serviceSoon)
	defer cancel()
	ip := ""
	err := i.client.WaitFor(ctx, fmt.Sprintf("the Service %s/%s", namespace, name), kube.Poll, func(ctx context.Context) (bool, string, error) {
		o, err := i.client.Kubernetes.CoreV1().Services(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, "", err
		}
		ip = o.Spec.ClusterIP
		return ip != "" && !strings.EqualFold(ip, "None"), "it has no address in the cluster", nil
	})
	return ip, err
}

// annotate gives the pods of each object an annotation with a digest of the ConfigMaps and
// Secrets that they use and that are this component's or the release's own, so that they
// are started again when those change.
func (i *installer) annotate(ctx context.Context, objs []*unstructured.Unstructured) error {
	known := map[string][]byte{} // "kind/namespace/name"
	var salt []byte
	for _, o := range objs {
		var all bytes.Buffer
		for _, use := range render.Uses(o) {
			kind, name, _ := strings.Cut(use, "/")
			namespace := cmp.Or(o.GetNamespace(), i.component.Namespace)
			key := kind + "/" + namespace + "/" + name
			if _, seen := known[key]; !seen {
				content, err := i.content(ctx, objs, kind, namespace, name)
				if err != nil {
					return err
				}
				known[key] = content
			}
			if known[key] != nil {
				fmt.Fprintf(&all, "%s %d\n%s\n", use, len(known[key]), known[key])
			}
		}
		if all.Len() == 0 {
			continue
		}
		if salt == nil {
			var err error
			if salt, err = i.salt(ctx); err != nil {
				return err
			}
		}
		digest := hmac.New(sha256.New, salt)
		digest.Write(all.Bytes())
		if err := render.Annotate(o, render.ConfigAnnotation, hex.EncodeToString(digest.Sum(nil))); err != nil {
			return i.badManifests(err)
		}
	}
	return nil
}

// content is the data of a ConfigMap or Secret among objs or of the release; nil for others.
func (i *installer) content(ctx context.Context, objs []*unstructured.Unstructured, kind, namespace, name string) ([]byte, error) {
	at := slices.IndexFunc(objs, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == kind && o.GetName() == name && cmp.Or(o.GetNamespace(), i.component.Namespace) == namespace
	})
	if at >= 0 {
		return json.Marshal([]any{objs[at].Object["data"], objs[at].Object["binaryData"], objs[at].Object["stringData"]})
	}
	m := kube.Member{Kind: corev1.SchemeGroupVersion.WithKind(kind), Namespace: namespace, Name: name}
	if !slices.ContainsFunc(installed.Prerequisites(i.release), m.Same) {
		return nil, nil
	}
	live, err := i.client.Live(ctx, m)
	if err != nil {
		return nil, err
	}
	if live == nil { // a Secret of the user's that the configuration does not have
		return []byte("none"), nil
	}
	return json.Marshal(live.Object["data"])
}

// salt keeps the digest of a short secret from being guessed at.
func (i *installer) salt(ctx context.Context) ([]byte, error) {
	o, err := i.client.Secret(ctx, kube.SystemNamespace, kube.SaltSecret)
	if err != nil {
		return nil, err
	}
	if o == nil || len(o.Data[kube.SaltKey]) == 0 {
		return nil, fmt.Errorf("secret %s/%s is not there", kube.SystemNamespace, kube.SaltSecret)
	}
	return o.Data[kube.SaltKey], nil
}
