package render_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config/platform"
	"github.com/slipway-sh/slipway/stages/internal/render"
)

// TestAPatchOfListsWithTwoKeys: a port as TCP and the same port as UDP are two, as they are to
// the API server, for which a port without a protocol is TCP.
func TestAPatchOfListsWithTwoKeys(t *testing.T) {
	const service, deployment = "{apiVersion: v1, kind: Service, metadata: {name: dns}, spec: {ports: %}}", "{apiVersion: apps/v1, kind: Deployment, metadata: {name: dns}, spec: {template: {spec: %}}}"
	in := func(object, fields string) string { return strings.Replace(object, "%", fields, 1) }
	for name, x := range map[string]struct{ object, base, patch, want string }{
		"added": {
			service, "[{name: udp, port: 53, protocol: UDP}]", "[{name: tcp, port: 53, protocol: TCP}]",
			"[{name: tcp, port: 53, protocol: TCP}, {name: udp, port: 53, protocol: UDP}]",
		},
		"both changed": {
			service, "[{name: udp, port: 53, protocol: UDP}, {name: tcp, port: 53}]", "[{port: 53, targetPort: 5354}, {port: 53, protocol: UDP, targetPort: 5353}]",
			"[{name: udp, port: 53, protocol: UDP, targetPort: 5353}, {name: tcp, port: 53, protocol: TCP, targetPort: 5354}]",
		},
		"both added": {
			service, "[]", "[{name: udp, port: 53, protocol: UDP}, {name: tcp, port: 53, protocol: TCP}]",
			"[{name: udp, port: 53, protocol: UDP}, {name: tcp, port: 53, protocol: TCP}]",
		},
		"one deleted": {
			service, "[{name: udp, port: 53, protocol: UDP}, {name: tcp, port: 53}]", "[{port: 53, protocol: TCP, $patch: delete}]",
			"[{name: udp, port: 53, protocol: UDP}]",
		},
		"all replaced": {
			service, "[{name: udp, port: 53, protocol: UDP}, {name: tcp, port: 53}]", "[{$patch: replace}, {name: web, port: 80}]", "[{name: web, port: 80, protocol: TCP}]",
		},
		"by its number": {
			service, "[{name: udp, port: 53, protocol: UDP}, {name: web, port: 80}]", "[{port: 80, nodePort: 30080}]",
			"[{name: udp, port: 53, protocol: UDP}, {name: web, port: 80, protocol: TCP, nodePort: 30080}]",
		},
		"of containers": {
			deployment, "{containers: [{name: a, ports: [{containerPort: 53, protocol: UDP}]}, {name: b}]}", "{containers: [{name: a, ports: [{containerPort: 53, protocol: TCP}]}]}",
			"{containers: [{name: a, ports: [{containerPort: 53, protocol: TCP}, {containerPort: 53, protocol: UDP}]}, {name: b}]}",
		},
		"of the spread over nodes": {
			deployment, "{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}]}",
			"{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, maxSkew: 2}]}",
			"{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, maxSkew: 2}, {topologyKey: zone, whenUnsatisfiable: DoNotSchedule, maxSkew: 1}]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := files(map[string]string{"product/install.yaml": in(x.object, x.base)})
			release := files(map[string]string{"p.yaml": in(x.object, x.patch)})
			objs, err := render.Manifests(t.Context(), release, bundle, platform.Component{Bundle: "product", Path: "p.yaml"})
			require.NoError(t, err)
			require.Len(t, objs, 1)
			require.YAMLEq(t, in(x.object, x.want), text(t, objs[0].Object))
		})
	}
}
