package runpackage

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
	"github.com/slipway-sh/slipway/fault/faulttest"
)

// What the bytes of a fuzzed package are.
const (
	rawFile    = iota // the file
	rawArchive        // the tar archive, of which the file is made
	rawIndex          // the index: file names, of files whose content is their name
)

// FuzzRead: a package is read as it is written, or rejected, and nothing of it is unpacked outside
// the directory.
func FuzzRead(f *testing.F) {
	info, files := sample()
	var b bytes.Buffer
	require.NoError(f, Write(&b, info, files, nil))
	f.Add(uint8(rawFile), b.Bytes())
	f.Add(uint8(rawArchive), unpacked(f, b.Bytes()))
	for _, text := range []string{
		`{"names":["a","b/c"]}`, `{"names":["../a"]}`, `{"names":["a","a/b"]}`, `{"names":["/etc/passwd"]}`, `{"names":["a\\..\\b","c:","\u001b[2J"]}`,
		`{"names":["index.json","index.sigstore.json","./a","a//b","a/../../b",""]}`, `{"names":["CON","a\u0000b"],"info":{"workflow":"\u202e","secrets":{"a":"\u009b"}}}`,
		`{"info":{"started":"9999-12-31T23:59:59Z","before":{}}}`, `{"info":{"started":"0000-01-01T00:00:00Z"},"names":["a"]}`,
	} {
		f.Add(uint8(rawIndex), []byte(text))
	}
	f.Fuzz(func(t *testing.T, kind uint8, data []byte) {
		switch kind {
		case rawArchive:
			data = compressed(t, data)
		case rawIndex:
			data = compressed(t, forged(t, data))
		}
		faulttest.Bounded(t, func() { checkPackage(t, data) })
	})
}

func checkPackage(t *testing.T, data []byte) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run.tar.zst")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	p, err := Read(file, nil)
	if err != nil {
		want := fault.Preflight
		if f, ok := fault.Whole(err); ok && f.Code == CodeUnreadable {
			want = fault.Usage
		}
		faulttest.Coded(t, err, want)
		return
	}
	require.NoError(t, p.printable())
	dir := filepath.Join(t.TempDir(), "in", "dir")
	require.NoError(t, os.MkdirAll(dir, 0o755))
	require.NoError(t, p.WriteTo(dir))
	n := 0
	require.NoError(t, filepath.WalkDir(filepath.Dir(filepath.Dir(dir)), func(at string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, at)
			require.Contains(t, p.Files, filepath.ToSlash(name))
			n++
		}
		return err
	}))
	require.Len(t, p.Files, n)
	if p.Signed { // by a key that is not here
		return
	}
	var again bytes.Buffer
	require.NoError(t, Write(&again, p.Info, p.Files, nil))
	require.NoError(t, os.WriteFile(file, again.Bytes(), 0o600))
	twice, err := Read(file, nil)
	require.NoError(t, err)
	require.Equal(t, p.Info, twice.Info)
	require.Equal(t, p.Files, twice.Files)
}

func compressed(t *testing.T, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, compress(&b, plain))
	return b.Bytes()
}

// forged is an archive that no Write makes, with the digests of what is in it.
func forged(t *testing.T, text []byte) []byte {
	t.Helper()
	var in struct {
		Info  Info
		Names []string
	}
	if json.Unmarshal(text, &in) != nil {
		t.Skip("no JSON: nothing is made of it")
	}
	files := Files{}
	for i, name := range in.Names {
		files[name] = File{Data: []byte(name), Executable: i%2 == 1}
	}
	index, err := state(in.Info, files).encode()
	if err != nil {
		t.Skip("it cannot be written: nothing is made of it")
	}
	var b bytes.Buffer
	if archive(&b, in.Info.Started, index, nil, files) != nil {
		t.Skip("tar cannot hold it: nothing is made of it")
	}
	return b.Bytes()
}
