package redact_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

func TestText(t *testing.T) {
	for in, want := range map[string]string{
		`dial postgres://app:s3cr3t-Pw@db:5432/app?x=1: refused`:                     `dial postgres://***@db:5432/app?x=1: refused`,
		`fetch https://x-token:abc@git.example.org/a.git`:                            `fetch https://***@git.example.org/a.git`,
		`fetch https://git.example.org/a.git at 10:02`:                               `fetch https://git.example.org/a.git at 10:02`,
		`PGPASSWORD=hunter2 psql`:                                                    `PGPASSWORD=*** psql`,
		`password: hunter`:                                                           `password: ***`,
		`{"password":"a b","user":"app"}`:                                            `{"password":***,"user":"app"}`,
		`msg="{\"adminPassword\":\"a b\",\"user\":1}"`:                               `msg="{\"adminPassword\":***,\"user\":1}"`,
		`clientSecret = 'x y z' next`:                                                `clientSecret = *** next`,
		`Authorization: Bearer abcdef.ghijkl-12`:                                     `Authorization: Bearer ***`,
		`api_key=AbC123&page=2`:                                                      `api_key=***&page=2`,
		`key AKIAABCDEFGHIJKLMNOP used`:                                              `key *** used`,
		`id eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrdWJlIn0.c2lnbmF0dXJl of`:                `id *** of`,
		"a\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----\nb": "a\n***\nb",
		"cut -----BEGIN PRIVATE KEY-----\nMIIE":                                      "cut ***",

		`GET https://x.blob.example/c?sv=1&sig=abc%2F: 403`:                    `GET https://x.blob.example/c?sv=1&sig=***: 403`,
		`Authorization: SharedKey acct:c2lnbmVk`:                               `Authorization: SharedKey ***`,
		`AccountKey=YWJj;Endpoint=x`:                                           `AccountKey=***;Endpoint=x`,
		`?X-Amz-Signature=0f0f&X-Amz-Credential=AKIAABCDEFGHIJKLMNOP/20260101`: `?X-Amz-Signature=***&X-Amz-Credential=***`,

		`password authentication failed for user "app"`: `password authentication failed for user "app"`,
		`secret "database-reader" not found`:            `secret "database-reader" not found`,
		`couldn't find key password in Secret apps/db`:  `couldn't find key password in Secret apps/db`,
		`secretName: database-reader-1`:                 `secretName: database-reader-1`,
		`invalid token: expired`:                        `invalid token: expired`,
		`token: Zq81xWv0`:                               `token: ***`,
		`image docker.io/x:1 not found`:                 `image docker.io/x:1 not found`,
	} {
		require.Equal(t, want, redact.Text(in), in)
		require.Equal(t, want, redact.Text(redact.Text(in)), "what is hidden stays as it is: %s", in)
	}
}

func TestLooksSecret(t *testing.T) {
	for _, c := range []struct {
		path, value string
		want        bool
	}{
		{"DB_PASSWORD", "hunter2", true},
		{"auth.adminPassword", "correct horse", true},
		{"api.token", "Zq81xWv0", true},
		{"extraEnv[0].value", "postgres://app:hunter2@db/app", true},
		{"note", "-----BEGIN PRIVATE KEY-----\nMIIE", true},
		{"script", "PGPASSWORD=hunter2 psql", true},

		{"password", "", false},
		{"auth.existingSecret", "database-owner", false},
		{"tls.secretName", "gitea-tls", false},
		{"passwordFile", "/run/password", false},
		{"GREETING", "hello", false},
		{"passwords.title", "Reset it", false},
		{"secretKeys.adminPasswordKey", "postgres-password", false},
		{"script", `PGPASSWORD="$PGPASSWORD" psql`, false},
		{"script", `'PGPASSWORD="$(cat "$POSTGRES_PASSWORD_FILE")" exec pg_dumpall'`, false},
		{"script", `PASSWORD=${PASSWORD:?give one} psql`, false},
		{"script", `PASSWORD=${PASSWORD:-hunter2} psql`, true},
	} {
		require.Equal(t, c.want, redact.LooksSecret(c.path, c.value), "%s: %s", c.path, c.value)
	}
}
