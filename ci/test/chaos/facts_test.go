package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

const cluster = `{"items":[
{"kind":"Secret","metadata":{"name":"s","namespace":"n","uid":"1"},"data":{"password":"%s"}},
{"kind":"Service","metadata":{"name":"w","namespace":"n","resourceVersion":"%s"},"spec":{"clusterIP":"10.0.0.%s","ports":[{"port":80,"nodePort":3%s}]}},
{"kind":"Application","metadata":{"name":"a","namespace":"n"},"spec":{"x":1},"status":{"sync":{"status":"Synced","revision":"%s"},"health":{"status":"%s"}}}
]}`

func TestFactsLeaveOutChanceAndNothingElse(t *testing.T) {
	read := func(text string) facts {
		t.Helper()
		f, err := objects([]byte(text))
		require.NoError(t, err)
		return f
	}
	list := func(password, version, last, health string) string {
		text := cluster
		for _, v := range []string{password, version, last, last, "0123456789012345678901234567890123456789", health} {
			text = replaceFirst(text, v)
		}
		return text
	}
	want := read(list("a", "1", "1", "Healthy"))
	require.NoError(t, want.compare(read(list("b", "2", "2", "Healthy"))))
	require.ErrorContains(t, want.compare(read(list("a", "1", "1", "Degraded"))), "Application n/a differs")

	missing := read(list("a", "1", "1", "Healthy"))
	delete(missing, "Secret n/s")
	require.ErrorContains(t, want.compare(missing), "Secret n/s is missing")
	require.ErrorContains(t, missing.compare(want), "Secret n/s is there in addition")

	_, err := objects([]byte(`{"items":[]}`))
	require.Error(t, err, "an empty cluster is no proof")
}

func replaceFirst(s, v string) string {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '%' && s[i+1] == 's' {
			return s[:i] + v + s[i+2:]
		}
	}
	return s
}

func TestWithoutChance(t *testing.T) {
	require.Equal(t, "run: <run> at <time> on <address>", withoutChance("run: 20260101-101010-a1b2c3 at 2026-01-01T10:10:10Z on 10.1.2.3"))
	require.Equal(t, `terraformSerial: <serial> {"modifiedAt":"<time>"}`, withoutChance(`terraformSerial: 12 {"modifiedAt":"1795221837"}`))
	require.Equal(t, `"<pem>x"`, withoutChance(`"-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----\nx"`))
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"--rounds", "0", "--bundle", "b"}, {"--kinds", "sun", "--bundle", "b"}, {"extra", "--bundle", "b"}, {"--bundle", ""}} {
		_, err := parse(args, t.Output())
		require.Error(t, err, "%v", args)
	}
	s, err := parse([]string{"--bundle", "b", "--kinds", "step,api", "--seed", "7"}, t.Output())
	require.NoError(t, err)
	require.Equal(t, []string{"step", "api"}, s.kinds)
	require.Equal(t, uint64(7), s.seed)
}

func TestWhoIsAStep(t *testing.T) {
	require.True(t, process{args: []string{"slipway", "step", "infrastructure/terraform"}}.isStep())
	require.False(t, process{args: []string{"/.init", "slipway", "step", "infrastructure/terraform"}}.isStep())
	require.False(t, process{args: []string{"slipway", "install"}}.isStep())
	require.True(t, process{args: []string{"/usr/local/bin/slipway-node", "kube-apiserver", "--x"}}.isAPIServer())
}
