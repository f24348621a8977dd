package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func env(values map[string]string) func(string) string {
	return func(name string) string { return values[name] }
}

// complete is an environment with everything that the server needs.
func complete(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"password": "s3cret\n", "client-secret": "cl1ent", "session-key": testKey} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	return map[string]string{
		"TLS_CERTIFICATE_FILE": "/tls.crt", "TLS_KEY_FILE": "/tls.key", "PUBLIC_URL": "https://console.test/",
		"ISSUER": "https://dex.test:5556", "CLIENT_ID": "console", "CLIENT_SECRET_FILE": filepath.Join(dir, "client-secret"),
		"SESSION_KEY_FILE": filepath.Join(dir, "session-key"), "CLUSTER_ID": "c1",
		"DATABASE_HOST": "db", "DATABASE_NAME": "console", "DATABASE_USER": "console", "DATABASE_PASSWORD_FILE": filepath.Join(dir, "password"),
	}
}

func TestServerConfig(t *testing.T) {
	cfg, err := ServerConfigFrom(env(complete(t)))
	require.NoError(t, err)
	require.Equal(t, ServerConfig{
		Listen: ":8443", Certificate: "/tls.crt", Key: "/tls.key", PublicURL: "https://console.test", Title: "Console", ClusterID: "c1",
		Issuer:     IssuerConfig{URL: "https://dex.test:5556", ClientID: "console", ClientSecret: "cl1ent"},
		Database:   Database{Host: "db", Port: "5432", Name: "console", User: "console", Password: "s3cret"},
		SessionKey: testKey,
	}, cfg)
}

func TestConfigurationsReportEverything(t *testing.T) {
	_, err := ServerConfigFrom(env(map[string]string{"ISSUER": "http://dex.test"}))
	require.EqualError(t, err, `TLS_CERTIFICATE_FILE is not set
TLS_KEY_FILE is not set
PUBLIC_URL is not set
ISSUER: "http://dex.test" is no URL with https
CLIENT_ID is not set
neither CLIENT_SECRET_FILE nor CLIENT_SECRET is set
DATABASE_HOST is not set
DATABASE_NAME is not set
DATABASE_USER is not set
neither DATABASE_PASSWORD_FILE nor DATABASE_PASSWORD is set
neither SESSION_KEY_FILE nor SESSION_KEY is set`)

	_, err = AdminConfigFrom(env(nil))
	require.EqualError(t, err, `DEX_API is not set
ADMIN_EMAIL is not set
ADMIN_NAME is not set
ADMIN_ID is not set
neither ADMIN_PASSWORD_FILE nor ADMIN_PASSWORD is set`)
}

func TestSecretsOfFiles(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for name, tc := range map[string]struct {
		env  map[string]string
		want string // of the error
	}{
		"plain":   {map[string]string{"DATABASE_PASSWORD": "s3cret"}, ""},
		"both":    {map[string]string{"DATABASE_PASSWORD": "s3cret", "DATABASE_PASSWORD_FILE": empty}, "are both set"},
		"missing": {map[string]string{"DATABASE_PASSWORD_FILE": filepath.Join(dir, "no")}, "does not exist"},
		"empty":   {map[string]string{"DATABASE_PASSWORD_FILE": empty}, "is empty"},
		"folder":  {map[string]string{"DATABASE_PASSWORD_FILE": dir}, "is a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.env["DATABASE_HOST"], tc.env["DATABASE_NAME"], tc.env["DATABASE_USER"] = "h", "n", "u"
			d, err := DatabaseFrom(env(tc.env))
			if tc.want == "" {
				require.NoError(t, err)
				require.Equal(t, Secret("s3cret"), d.Password)
				return
			}
			require.ErrorContains(t, err, tc.want)
			require.Empty(t, d.Password)
		})
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	cfg, err := ServerConfigFrom(env(complete(t)))
	require.NoError(t, err)
	text := fmt.Sprintf("%v %+v %#v %s", cfg, cfg, cfg, cfg.Database)
	require.Contains(t, text, "console@db:5432/console")
	for _, secret := range []string{"s3cret", "cl1ent", testKey} {
		require.NotContains(t, text, secret)
	}
}
