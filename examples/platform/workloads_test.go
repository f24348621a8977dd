package platform_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/config/platform"
)

var byDigest = regexp.MustCompile(`^[^@:]+@sha256:[0-9a-f]{64}$`)

// decode reads an object as its own type and knows every field of it: what is
// misspelt is an error. It returns the Pods' template where there is one.
func decode(t *testing.T, o object) *corev1.PodTemplateSpec {
	t.Helper()
	strict := func(into any) { require.NoError(t, yaml.UnmarshalStrict(o.source, into), "%s", o.source) }
	switch o.GetAPIVersion() + " " + o.GetKind() {
	case "apps/v1 Deployment":
		var d appsv1.Deployment
		strict(&d)
		require.Subset(t, d.Spec.Template.Labels, d.Spec.Selector.MatchLabels)
		return &d.Spec.Template
	case "apps/v1 StatefulSet":
		var s appsv1.StatefulSet
		strict(&s)
		require.Subset(t, s.Spec.Template.Labels, s.Spec.Selector.MatchLabels)
		return &s.Spec.Template
	case "batch/v1 Job":
		var j batchv1.Job
		strict(&j)
		require.Nil(t, j.Spec.TTLSecondsAfterFinished, "Argo CD would make it again")
		return &j.Spec.Template
	case "v1 ConfigMap":
		strict(&corev1.ConfigMap{})
	case "v1 Service":
		strict(&corev1.Service{})
	case "v1 ServiceAccount":
		strict(&corev1.ServiceAccount{})
	case "v1 PersistentVolumeClaim":
		strict(&corev1.PersistentVolumeClaim{})
	case "v1 ResourceQuota":
		strict(&corev1.ResourceQuota{})
	case "networking.k8s.io/v1 NetworkPolicy":
		strict(&networkingv1.NetworkPolicy{})
	case "policy/v1 PodDisruptionBudget":
		strict(&policyv1.PodDisruptionBudget{})
	case "scheduling.k8s.io/v1 PriorityClass":
		strict(&schedulingv1.PriorityClass{})
	case "argoproj.io/v1alpha1 Application":
	default:
		t.Fatalf("the tests do not know %s %s", o.GetAPIVersion(), o.GetKind())
	}
	return nil
}

// everything renders the release with every component on, at each scale.
func everything(t *testing.T, check func(t *testing.T, scale string, parts map[string]part)) {
	t.Helper()
	dir, _ := open(t)
	for _, p := range config.Profiles() {
		t.Run(p.Name(), func(t *testing.T) {
			check(t, p.Name(), renderAll(t, dir, p.Name(), map[string]bool{"toolbox": true}))
		})
	}
}

// pods calls check for the Pods' template of every workload.
func pods(t *testing.T, parts map[string]part, check func(p part, o object, pod *corev1.PodTemplateSpec)) {
	t.Helper()
	for _, p := range parts {
		for _, o := range p.objects {
			if pod := decode(t, o); pod != nil {
				check(p, o, pod)
			}
		}
	}
}

func TestWorkloadsAreConfined(t *testing.T) {
	everything(t, func(t *testing.T, _ string, parts map[string]part) {
		seen := 0
		pods(t, parts, func(_ part, o object, pod *corev1.PodTemplateSpec) {
			seen++
			name := o.GetKind() + " " + o.GetName()
			s := pod.Spec
			require.NotNil(t, s.SecurityContext, name)
			require.True(t, *s.SecurityContext.RunAsNonRoot, name)
			require.Positive(t, *s.SecurityContext.RunAsUser, name)
			require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, s.SecurityContext.SeccompProfile.Type, name)
			require.False(t, *s.AutomountServiceAccountToken, name)
			require.False(t, *s.EnableServiceLinks, name)
			require.NotNil(t, s.TerminationGracePeriodSeconds, name)
			require.LessOrEqual(t, *s.TerminationGracePeriodSeconds, int64(30), name)
			for _, v := range s.Volumes {
				require.Nil(t, v.HostPath, name)
			}
			for _, c := range slices.Concat(s.InitContainers, s.Containers) {
				require.NotNil(t, c.SecurityContext, name)
				require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, name)
				require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, name)
				require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, name)
				require.Empty(t, c.SecurityContext.Capabilities.Add, name)
				require.False(t, c.Resources.Requests.Cpu().IsZero(), name)
				require.False(t, c.Resources.Requests.Memory().IsZero(), name)
				require.False(t, c.Resources.Limits.Memory().IsZero(), name)
				require.GreaterOrEqual(t, c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()), 0, name)
			}
		})
		require.Equal(t, 5, seen)
	})
}

func TestServersHaveProbesThatNoticeSoon(t *testing.T) {
	everything(t, func(t *testing.T, _ string, parts map[string]part) {
		pods(t, parts, func(_ part, o object, pod *corev1.PodTemplateSpec) {
			if o.GetKind() == "Job" {
				return
			}
			for _, c := range pod.Spec.Containers {
				require.NotNil(t, c.StartupProbe, c.Name)
				require.NotNil(t, c.ReadinessProbe, c.Name)
				require.NotNil(t, c.LivenessProbe, c.Name)
				require.Equal(t, int32(1), c.StartupProbe.PeriodSeconds, c.Name)
				require.GreaterOrEqual(t, c.StartupProbe.FailureThreshold, int32(30), c.Name)
				require.Zero(t, c.StartupProbe.InitialDelaySeconds, c.Name)
			}
		})
	})
}

func TestImagesAreTheGivenOnes(t *testing.T) {
	given := everyImage()
	everything(t, func(t *testing.T, _ string, parts map[string]part) {
		used := map[string][]string{}
		pods(t, parts, func(p part, _ object, pod *corev1.PodTemplateSpec) {
			for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
				require.Regexp(t, byDigest, c.Image)
				require.Equal(t, corev1.PullIfNotPresent, c.ImagePullPolicy)
				for name, ref := range given {
					if ref == c.Image {
						used[p.component.Name] = append(used[p.component.Name], name)
					}
				}
			}
		})
		for _, p := range parts {
			if p.component.Name == "" {
				continue
			}
			names := used[p.component.Name]
			slices.Sort(names)
			require.Equal(t, p.component.Images, slices.Compact(names), "images of %s in platform.yaml", p.component.Name)
		}
	})
}

// TestSecretsAreMade holds every Secret and key that a chart reads against what
// platform.yaml makes.
func TestSecretsAreMade(t *testing.T) {
	_, release := open(t)
	var made []string
	for _, c := range release.Certificates {
		made = append(made, c.Secret+"/*")
	}
	for _, s := range release.Secrets {
		made = append(made, s.Namespace+"/"+s.Name+"/*")
		for _, k := range s.Keys {
			made = append(made, s.Namespace+"/"+s.Name+"/"+k.Key)
		}
	}
	everything(t, func(t *testing.T, _ string, parts map[string]part) {
		read := 0
		pods(t, parts, func(p part, _ object, pod *corev1.PodTemplateSpec) {
			for _, name := range secrets(pod.Spec) {
				read++
				require.Contains(t, made, p.component.Namespace+"/"+name)
			}
		})
		require.Greater(t, read, 10)
	})
}

// secrets lists what a Pod reads as secret/key, or secret/* for all of it.
func secrets(s corev1.PodSpec) []string {
	var out []string
	add := func(name string, items []corev1.KeyToPath) {
		if len(items) == 0 {
			out = append(out, name+"/*")
		}
		for _, i := range items {
			out = append(out, name+"/"+i.Key)
		}
	}
	for _, v := range s.Volumes {
		if v.Secret != nil {
			add(v.Secret.SecretName, v.Secret.Items)
		}
		if v.Projected != nil {
			for _, source := range v.Projected.Sources {
				if source.Secret != nil {
					add(source.Secret.Name, source.Secret.Items)
				}
			}
		}
	}
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		for _, e := range c.Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				out = append(out, e.ValueFrom.SecretKeyRef.Name+"/"+e.ValueFrom.SecretKeyRef.Key)
			}
		}
	}
	return out
}

// TestEveryScaleHasItsSizes: replicas of the guestbook, and GiB of the volumes.
func TestEveryScaleHasItsSizes(t *testing.T) {
	dir, _ := open(t)
	sizes := map[string]struct{ replicas, gitGiB, databaseGiB int }{"50": {1, 1, 1}, "100": {2, 10, 20}, "500": {2, 25, 50}, "1000": {3, 50, 100}}
	require.Len(t, config.Profiles(), len(sizes))
	for scale, size := range sizes {
		parts := renderAll(t, dir, scale, nil)
		for _, o := range slices.Concat(parts["gitea"].objects, parts["database"].objects, parts["guestbook"].objects) {
			switch o.GetKind() + " " + o.GetName() {
			case "Deployment guestbook":
				require.EqualValues(t, size.replicas, o.Object["spec"].(map[string]any)["replicas"], scale)
			case "PersistentVolumeClaim gitea":
				require.Contains(t, string(o.source)+"\n", fmt.Sprintf("storage: %dGi\n", size.gitGiB), scale)
			case "PersistentVolumeClaim data-database-0":
				require.Contains(t, string(o.source)+"\n", fmt.Sprintf("storage: %dGi\n", size.databaseGiB), scale)
			}
		}
	}
}

func TestChartsRefuseImagesThatAreNotPinned(t *testing.T) {
	dir, release := open(t)
	charts := 0
	for _, c := range release.Components {
		if _, err := fs.Stat(dir, c.Path+"/Chart.yaml"); err != nil {
			continue
		}
		for _, image := range c.Images {
			charts++
			for name, ref := range map[string]any{
				"missing": nil, "empty": "", "tag": "slipway.local/" + image + ":1.0", "latest": image + ":latest",
				"short digest": "slipway.local/" + image + "@sha256:abc",
			} {
				values := map[string]any{"images": map[string]any{}, "host": "gitea.slipway.test", "scale": "50"}
				if ref != nil {
					values["images"].(map[string]any)[image] = ref
				}
				_, err := manifest(load(t, dir, c.Path), c.Name, c.Namespace, values)
				require.ErrorContains(t, err, "images", "%s: %s", c.Name, name)
				require.ErrorContains(t, err, image, "%s: %s", c.Name, name)
			}
		}
	}
	require.Equal(t, 4, charts)

	values := rootValues("50", nil)
	values["images"] = images("guestbook")
	_, err := manifest(load(t, dir, "gitops/root-app"), "root-app", "argocd", values)
	require.ErrorContains(t, err, "images.postgresql is needed by database")
}

func TestBrokenImage(t *testing.T) {
	dir := broken(t)
	_, err := platform.Load(dir)
	require.NoError(t, err)
	parts := renderAll(t, dir, "50", nil)
	found := false
	pods(t, parts, func(p part, _ object, pod *corev1.PodTemplateSpec) {
		missing := pod.Spec.Containers[0].Image == "slipway.local/no-such-image@sha256:"+fmt.Sprintf("%064d", 0)
		require.Equal(t, p.component.Name == "guestbook", missing, p.component.Name)
		found = found || missing
	})
	require.True(t, found)
}
