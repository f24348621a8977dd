package render_test

import (
	"bytes"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/contract"
	"github.com/slipway-sh/slipway/stages/internal/kube"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

const busybox = "slipway.local/busybox@sha256:00"

// begun is the release that a new one begins with, and the objects of its components.
func begun(t *testing.T) (*platform.Release, map[string][]*unstructured.Unstructured) {
	t.Helper()
	tree, files := fstest.MapFS{}, os.DirFS("../../../cli/skeleton")
	require.NoError(t, fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, name)
		tree[name] = &fstest.MapFile{Data: bytes.ReplaceAll(text, []byte("__NAME__"), []byte("shop"))}
		return err
	}))
	r, err := platform.Load(tree)
	require.NoError(t, err)
	out := map[string][]*unstructured.Unstructured{}
	for _, c := range r.Components {
		if c.Kind == platform.Chart {
			out[c.Name] = chartObjects(t, r, c)
			continue
		}
		out[c.Name], err = render.Manifests(t.Context(), tree, nil, c)
		require.NoError(t, err, c.Name)
		render.SetImages(out[c.Name], map[string]string{"busybox": busybox})
	}
	return r, out
}

func chartObjects(t *testing.T, r *platform.Release, c platform.Component) []*unstructured.Unstructured {
	t.Helper()
	values, err := render.Values(r.Files(), c, contract.ComponentInput{Fill: map[string]any{
		"images.busybox": busybox, "deployment": "blue", "adminEmail": "ops@example.com",
	}})
	require.NoError(t, err)
	dir := t.TempDir()
	from, err := fs.Sub(r.Files(), c.Path)
	require.NoError(t, err)
	require.NoError(t, os.CopyFS(dir, from))
	ch, err := loader.LoadDir(dir)
	require.NoError(t, err)
	install := action.NewInstall(&action.Configuration{})
	install.ClientOnly, install.DryRun, install.ReleaseName, install.Namespace = true, true, c.Name, c.Namespace
	rel, err := install.Run(ch, values)
	require.NoError(t, err)
	objs, err := kube.Decode([]byte(rel.Manifest))
	require.NoError(t, err)
	return objs
}

// TestTheReleaseToBeginWithRuns in a namespace with restricted pod security, on images of
// the bundle, and reads what the release makes.
func TestTheReleaseToBeginWithRuns(t *testing.T) {
	r, objs := begun(t)
	made := map[string]bool{}
	for _, s := range r.Secrets {
		made["Secret/"+s.Name] = true
	}
	for _, m := range r.ConfigMaps {
		made["ConfigMap/"+m.Name] = true
	}
	pods := 0
	for component, all := range objs {
		require.Equal(t, []string{busybox}, render.Images(all), component)
		for _, o := range all {
			made[o.GetKind()+"/"+o.GetName()] = true
		}
		for _, o := range all {
			require.Empty(t, o.GetNamespace(), "it is that of the component")
			for _, use := range render.Uses(o) {
				require.True(t, made[use], "%s reads %s", o.GetName(), use)
			}
			if o.GetKind() == "Deployment" || o.GetKind() == "Job" {
				pods++
				restricted(t, o)
			}
		}
	}
	require.Equal(t, 3, pods)
	require.Equal(t, "<p>Hello from blue, which ops@example.com looks after.</p>\n", objs["hello"][0].Object["data"].(map[string]any)["index.html"])
}

// restricted checks what pod security asks for in a restricted namespace.
func restricted(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	var pod corev1.PodSpec
	if o.GetKind() == "Job" {
		var j batchv1.Job
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &j, true))
		pod = j.Spec.Template.Spec
	} else {
		pod = podOf(t, o)
	}
	require.True(t, *pod.SecurityContext.RunAsNonRoot, o.GetName())
	require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, pod.SecurityContext.SeccompProfile.Type, o.GetName())
	for _, c := range pod.Containers {
		require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, o.GetName())
		require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, o.GetName())
	}
}
