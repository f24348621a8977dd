package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/readiness"
	"github.com/slipway-sh/slipway/stages/internal/render"
	"github.com/slipway-sh/slipway/stages/step"
)

// dataLabel is on the pods of data; its value is the data's name.
const dataLabel = "slipway.sh/data"

const (
	startLimit   = 4 * time.Minute // for a pod to be ready
	cleanupLimit = 7 * time.Second // see lasting
	maxLine      = 200             // characters of what a check prints
)

func podsResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Version: "v1", Resource: "pods"}
}

// runningPod is a pod of data in which commands run.
type runningPod struct {
	*work
	data platform.Data
	at   container
}

// within calls do with a pod of data, the one with a store of its own if scratch, and removes it
// again, whatever happens. What a run that was killed left of it is removed before.
func (w *work) within(ctx context.Context, d platform.Data, scratch bool, do func(ctx context.Context, p runningPod) error) (err error) {
	o, err := w.pod(ctx, d, scratch)
	if err != nil {
		return w.badPod(d, err)
	}
	at := container{namespace: o.GetNamespace(), pod: o.GetName(), name: containerOf(o)}
	remove := func(ctx context.Context) error {
		ctx, cancel := lasting(ctx)
		defer cancel()
		if err := w.client.Delete(ctx, podsResource(), at.namespace, at.pod, metav1.DeletePropagationBackground); err != nil {
			return err
		}
		return w.client.WaitAbsent(ctx, "pod "+at.namespace+"/"+at.pod, func(ctx context.Context) (string, error) {
			_, err := w.client.Kubernetes.CoreV1().Pods(at.namespace).Get(ctx, at.pod, metav1.GetOptions{})
			return "it is being deleted", err
		})
	}
	if err := render.HideSecrets(ctx, w.client, []*unstructured.Unstructured{o}, w.env.Redact); err != nil { // its commands may print them
		return w.badPod(d, err)
	}
	live, err := w.client.Live(ctx, kube.MemberOf(o))
	if err == nil && live != nil && (!kube.Ours(live, w.env.Deployment) || live.GetLabels()[dataLabel] == "") {
		err = fmt.Errorf("there is a pod %s/%s that is not Slipway's", at.namespace, at.pod)
	} else if err == nil && live != nil {
		err = remove(ctx)
	}
	if err != nil {
		return w.badPod(d, err)
	}
	defer func() {
		if gone := remove(ctx); gone != nil { // the next run removes it, and so does a destroy
			w.env.Logger.Warn("remove the pod of data", "pod", at.namespace+"/"+at.pod, "error", gone)
		}
	}()
	starting, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if _, err = w.client.Apply(starting, []*unstructured.Unstructured{o}, kube.ApplyOptions{}); err == nil {
		err = readiness.WaitPodReady(starting, w.client, at.namespace, at.pod)
	}
	if err != nil {
		return w.badPod(d, err)
	}
	return do(ctx, runningPod{w, d, at})
}

// lasting is a context for cleaning up that goes on for cleanupLimit after ctx has ended, or
// began if that was later. A step ends a command, and then removes what that has stored, its
// pod, and starts who was stopped, all before its process ends.
func lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(cleanupLimit, cancel) })
	return out, func() {
		stop()
		cancel()
	}
}

// clear removes the pods that a run which was killed has left, in which a command may still
// be at work.
func (w *work) clear(ctx context.Context) error {
	left, err := w.client.DeleteAll(ctx, podsResource(), "", kube.DeploymentLabel+"="+w.env.Deployment+","+dataLabel)
	if len(left) > 0 {
		w.env.Progress("removed what a run has left: pod %s", strings.Join(left, ", "))
	}
	return err
}

func (w *work) badPod(d platform.Data, err error) error {
	return &fault.Fault{
		Code: CodePod, Class: step.ClassOf(err), Op: "start the pod of data " + d.Name,
		Fix: "correct its file in the platform release, or what keeps it from starting; " + w.next, Err: err,
	}
}

// pod is the Pod of data as its file has it, with images, names and labels.
func (w *work) pod(ctx context.Context, d platform.Data, scratch bool) (*unstructured.Unstructured, error) {
	text, withOwnStore := d.Pods()
	name := "slipway-data-" + d.Name
	if scratch {
		text, name = withOwnStore, "slipway-scratch-"+d.Name
	}
	c, _ := w.release.Component(d.Component)
	refs, known := map[string]string{}, map[string]any{}
	maps.Copy(refs, w.in.Rewrite)
	maps.Copy(known, w.in.Fill)
	for _, image := range c.ImageNames() {
		ref := w.in.Images[image]
		if ref == "" {
			return nil, fmt.Errorf("neither the bundle nor the registry has an image named %s", image)
		}
		refs[image] = ref
		known["images."+image] = ref
	}
	for _, hole := range platform.HolesIn(text) {
		if path, ok := platform.SettingHole(hole); ok {
			if v, ok := platform.Setting(w.in.Settings, path); ok {
				known[hole] = v
			}
		}
	}
	filled, err := platform.FillValues(text, known)
	if err != nil {
		return nil, err
	}
	o := &unstructured.Unstructured{Object: filled}
	render.SetImages([]*unstructured.Unstructured{o}, refs)
	if w.in.PullSecret {
		render.AddPullSecret([]*unstructured.Unstructured{o}, refs, kube.PullSecret)
	}
	o.SetName(name)
	o.SetGenerateName("")
	own := labels.Merge(kube.Labels(w.env.Deployment), labels.Set{dataLabel: d.Name})
	o.SetLabels(labels.Merge(o.GetLabels(), own))
	spec, _ := filled["spec"].(map[string]any)
	spec["terminationGracePeriodSeconds"] = int64(1) // whoever idles does not hear that it is to end
	if until, ok := ctx.Deadline(); ok {             // so that it does not outlive a run that is killed for long
		spec["activeDeadlineSeconds"] = int64(time.Until(until)/time.Second) + 60
	}
	return o, nil
}

func containerOf(o *unstructured.Unstructured) string {
	all, _, _ := unstructured.NestedSlice(o.Object, "spec", "containers")
	first, _ := all[0].(map[string]any)
	name, _ := first["name"].(string)
	return name
}

func (p runningPod) run(ctx context.Context, command []string, in io.Reader, out io.Writer) error {
	return p.exec(ctx, p.at, command, in, out)
}

// check runs the check of the data. line is what it printed before, of the data that was
// dumped or of the backup; empty: there is nothing to compare with. It returns the line that it prints now.
func (p runningPod) check(ctx context.Context, line string) (string, error) {
	var out bytes.Buffer
	in := line
	if in != "" {
		in += "\n"
	}
	if err := p.run(ctx, p.data.Check, strings.NewReader(in), &out); err != nil {
		return "", err
	}
	return oneLine(out.String())
}

// oneLine is the line that a check printed.
func oneLine(text string) (string, error) {
	text = strings.TrimSpace(text)
	printable := func(r rune) bool { return unicode.IsPrint(r) }
	switch {
	case text == "":
		return "", errors.New("the check printed nothing; it prints one line about the data")
	case strings.ContainsFunc(text, func(r rune) bool { return !printable(r) }):
		return "", errors.New("the check printed more than one line, or what is no text")
	case len(text) > maxLine:
		return "", fmt.Errorf("the check printed %d characters; it prints a line of %d at most", len(text), maxLine)
	}
	return text, nil
}
