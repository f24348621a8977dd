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

func TestConfigFrom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("s3cret\n"), 0o600))

	cfg, err := ConfigFrom(env(map[string]string{
		"DATABASE_HOST": "db", "DATABASE_NAME": "guestbook", "DATABASE_USER": "reader",
		"DATABASE_PASSWORD_FILE": file,
	}), os.ReadFile)
	require.NoError(t, err)
	require.Equal(t, Config{
		Listen: ":8080", Title: "Guestbook",
		Database: Database{Host: "db", Port: "5432", Name: "guestbook", User: "reader", Password: "s3cret"},
	}, cfg)
}

func TestConfigFromReportsEverything(t *testing.T) {
	_, err := ConfigFrom(env(nil), os.ReadFile)
	require.EqualError(t, err, "DATABASE_HOST is not set\nDATABASE_NAME is not set\nDATABASE_USER is not set\n"+
		"neither DATABASE_PASSWORD_FILE nor DATABASE_PASSWORD is set")
}

func TestPasswordFrom(t *testing.T) {
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
			password, err := passwordFrom(env(tc.env), os.ReadFile)
			if tc.want == "" {
				require.NoError(t, err)
				require.Equal(t, Secret("s3cret"), password)
				return
			}
			require.ErrorContains(t, err, tc.want)
			require.Empty(t, password)
		})
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	d := Database{Host: "db", Port: "5432", Name: "guestbook", User: "reader", Password: "s3cret"}
	require.Equal(t, "reader@db:5432/guestbook", d.String())
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", d, d, d, d.Password), "s3cret")
}
