package all_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/config"
	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/fault/faulttest"
	"github.com/slipway-sh/slipway/providers/all"
)

var update = flag.Bool("update", false, "write the goldens anew")

// leastBroken is how many broken files there are at least.
const leastBroken = 540

// canary is in the broken files where people write secrets, and in the environment.
const canary = "hunter2"

// TestBroken loads the broken files of testdata/broken: what is wrong with each stands beside it.
func TestBroken(t *testing.T) {
	cases := faulttest.Cases(t, "testdata/broken")
	require.GreaterOrEqual(t, len(cases), leastBroken)
	found := map[string]string{}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			err := load(t, c.Name+".yaml", c.Text)
			require.NotContains(t, strings.ToLower(message(err)), canary)
			found[c.Name] = faulttest.Problems(err)
			if *update {
				return
			}
			require.Equal(t, c.Want, found[c.Name])

			windows := bytes.ReplaceAll(c.Text, []byte("\n"), []byte("\r\n"))
			require.Equal(t, message(err), message(load(t, c.Name+".yaml", windows)), "with CRLF")
		})
	}
	if *update {
		faulttest.Update(t, "testdata/broken", found)
	}
}

// TestBroken_encoding: a file that is not text in UTF-8 is named as such.
func TestBroken_encoding(t *testing.T) {
	const text = "apiVersion: slipway.sh/v1\nglobal: {name: staging}\n"
	var little, big []byte
	for _, unit := range utf16.Encode([]rune(text)) {
		little, big = append(little, byte(unit), byte(unit>>8)), append(big, byte(unit>>8), byte(unit))
	}
	for name, c := range map[string]struct{ text, want string }{
		"an escape sequence":          {"apiVersion: slipway.sh/v1\nglobal:\n  name: \x1b[31mstaging\n", "line 3: got the byte 0x1b, want YAML text in UTF-8"},
		"gzip":                        {"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + canary, "line 1: got the byte 0x1f, want YAML text in UTF-8"},
		"Latin-1":                     {"apiVersion: slipway.sh/v1\nglobal:\n  # f\xfcr K\xf6ln\n", "line 3: got the byte 0xfc, want YAML text in UTF-8"},
		"a zero byte":                 {"apiVersion: slipway.sh/v1\nglobal:\n  name: stag\x00ing\n", "line 3: got the byte 0x00, want YAML text in UTF-8"},
		"UTF-16, big endian":          {"\xfe\xff" + string(big), "line 1: got text in UTF-16, want YAML text in UTF-8"},
		"UTF-16, little endian":       {"\xff\xfe" + string(little), "line 1: got text in UTF-16, want YAML text in UTF-8"},
		"UTF-16 without a first mark": {string(little), "line 1: got the byte 0x00, want YAML text in UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			err := load(t, "slipway.yaml", []byte(c.text))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, message(err), canary)
		})
	}
}

// TestBroken_printed: what a user sees.
func TestBroken_printed(t *testing.T) {
	printed := map[string]bool{"several-typos": true, "several-in-an-old-file": true, "api-version-newer": true}
	for _, c := range faulttest.Cases(t, "testdata/broken") {
		if !printed[c.Name] {
			continue
		}
		delete(printed, c.Name)
		golden := "testdata/broken/" + c.Name + ".txt"
		got := message(load(t, c.Name+".yaml", c.Text))
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(got), 0o600))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), got)
	}
	require.Empty(t, printed)
}

// message is what a user sees of an error.
func message(err error) string {
	f, ok := errors.AsType[*fault.Fault](err)
	if !ok {
		return ""
	}
	return fmt.Sprintf("error %s: %v\n%s\n", f.Code, err, f.Fix)
}

// load returns why a broken file is not loaded.
func load(t *testing.T, name string, text []byte) error {
	t.Helper()
	env := map[string]string{
		"CI_DOMAIN": "ci.example.com", "CI_NAME": "ci", "CI_REGION": "eu-central-1", "CI_USER": "somebody",
		"CI_SECRET": canary + " " + canary, "EMPTY": "",
	}
	opts := all.All().Options()
	opts.File = name
	opts.Env = func(name string) (string, bool) {
		value, ok := env[name]
		return value, ok
	}
	opts.Stores = map[string][]string{"s3": {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}}
	opts.Store = func(url string) error {
		if url != "s3://bucket" {
			return errors.New("there is no such bucket")
		}
		return nil
	}
	_, err := config.Load(text, opts)
	f, ok := errors.AsType[*fault.Fault](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, fault.Usage, f.Class)
	return err
}
