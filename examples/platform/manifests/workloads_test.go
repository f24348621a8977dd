package manifests_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-sh/slipway/containers/lock"
)

// TestEveryWorkloadIsConfined: to what the namespace's pod security asks for, and more.
func TestEveryWorkloadIsConfined(t *testing.T) {
	r := open(t)
	require.Equal(t, "restricted", r.Namespaces[0].Labels["pod-security.kubernetes.io/enforce"])
	seen := 0
	for _, o := range objects(t, r) {
		if o.pod == nil {
			continue
		}
		seen++
		name, s := o.kind+" "+o.meta.Name, o.pod
		require.True(t, *s.SecurityContext.RunAsNonRoot, name)
		require.Positive(t, *s.SecurityContext.RunAsUser, name)
		require.Equal(t, corev1.SeccompProfileTypeRuntimeDefault, s.SecurityContext.SeccompProfile.Type, name)
		require.False(t, *s.AutomountServiceAccountToken, name)
		require.False(t, *s.EnableServiceLinks, name)
		require.LessOrEqual(t, *s.TerminationGracePeriodSeconds, int64(30), name)
		for _, v := range s.Volumes {
			require.Nil(t, v.HostPath, name)
		}
		for _, c := range slices.Concat(s.InitContainers, s.Containers) {
			require.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, name)
			require.False(t, *c.SecurityContext.AllowPrivilegeEscalation, name)
			require.Equal(t, []corev1.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, name)
			require.Empty(t, c.SecurityContext.Capabilities.Add, name)
			require.False(t, c.Resources.Requests.Cpu().IsZero(), name)
			require.GreaterOrEqual(t, c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()), 0, name)
			require.False(t, c.Resources.Requests.Memory().IsZero(), name)
		}
	}
	require.Equal(t, 6, seen)
}

// TestImagesAreThoseOfTheLock: each is built for the bundle, in the version that the
// manifest names, and the component says that it runs it.
func TestImagesAreThoseOfTheLock(t *testing.T) {
	pins, err := lock.Load()
	require.NoError(t, err)
	used := map[string][]string{}
	for _, o := range objects(t, open(t)) {
		if o.pod == nil {
			continue
		}
		for _, c := range slices.Concat(o.pod.InitContainers, o.pod.Containers) {
			rest, ours := strings.CutPrefix(c.Image, "slipway.local/")
			name, tag, tagged := strings.Cut(rest, ":")
			require.True(t, ours && tagged, c.Image)
			locked, ok := pins.Image(name)
			require.True(t, ok, "%s is not in the lock", c.Image)
			require.Equal(t, locked.Version, tag, c.Image)
			require.True(t, locked.Workload, c.Image)
			require.Equal(t, corev1.PullIfNotPresent, c.ImagePullPolicy)
			used[o.component.Name] = append(used[o.component.Name], name)
		}
	}
	for _, c := range open(t).Components {
		names := used[c.Name]
		slices.Sort(names)
		require.Equal(t, c.Images, slices.Compact(names), "images of %s in platform.yaml", c.Name)
	}
}

// TestWhatPodsReadIsMade: every Secret and ConfigMap, with its keys, unless a Pod does
// without.
func TestWhatPodsReadIsMade(t *testing.T) {
	r := open(t)
	made := []string{"configMap slipway-ca/ca.crt"} // with every certificate
	add := func(kind, name string, keys ...string) {
		made = append(made, kind+" "+name+"/*")
		for _, k := range keys {
			made = append(made, kind+" "+name+"/"+k)
		}
	}
	for _, s := range r.Secrets {
		for _, k := range s.Keys {
			add("secret", s.Name, k.Key)
		}
	}
	for _, m := range r.ConfigMaps {
		for k := range m.Data {
			add("configMap", m.Name, k)
		}
	}
	for _, c := range r.Certificates {
		add("secret", path.Base(c.Secret))
	}
	add("configMap", "slipway-ca")
	all := objects(t, r)
	for _, o := range all {
		if o.configMap != nil {
			add("configMap", o.meta.Name)
		}
	}
	read := 0
	for _, o := range all {
		if o.pod == nil {
			continue
		}
		for _, what := range reads(*o.pod) {
			read++
			require.Contains(t, made, what, o.meta.Name)
		}
	}
	require.Greater(t, read, 20)
}

// reads lists what a Pod reads and cannot do without: "secret name/key", or "secret
// name/*" for all of it.
func reads(s corev1.PodSpec) []string {
	var out []string
	volume := func(kind, name string, items []corev1.KeyToPath) {
		if len(items) == 0 {
			out = append(out, kind+" "+name+"/*")
		}
		for _, i := range items {
			out = append(out, kind+" "+name+"/"+i.Key)
		}
	}
	for _, v := range s.Volumes {
		if v.Secret != nil {
			volume("secret", v.Secret.SecretName, v.Secret.Items)
		}
		if v.ConfigMap != nil {
			volume("configMap", v.ConfigMap.Name, v.ConfigMap.Items)
		}
	}
	must := func(optional *bool) bool { return optional == nil || !*optional }
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		for _, e := range c.Env {
			if e.ValueFrom == nil {
				continue
			}
			if ref := e.ValueFrom.SecretKeyRef; ref != nil && must(ref.Optional) {
				out = append(out, "secret "+ref.Name+"/"+ref.Key)
			}
			if ref := e.ValueFrom.ConfigMapKeyRef; ref != nil && must(ref.Optional) {
				out = append(out, "configMap "+ref.Name+"/"+ref.Key)
			}
		}
	}
	return out
}

// TestServersHaveProbes: each says when it has started, is ready and still lives.
func TestServersHaveProbes(t *testing.T) {
	for _, o := range objects(t, open(t)) {
		if o.pod == nil || o.job != nil {
			continue
		}
		for _, c := range o.pod.Containers {
			require.NotNil(t, c.StartupProbe, c.Name)
			require.NotNil(t, c.ReadinessProbe, c.Name)
			require.NotNil(t, c.LivenessProbe, c.Name)
			require.Equal(t, int32(1), c.StartupProbe.PeriodSeconds, c.Name)
			require.GreaterOrEqual(t, c.StartupProbe.FailureThreshold, int32(60), c.Name)
		}
	}
}
