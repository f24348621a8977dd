package runpackage

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/fault"
)

// sample is a package of a run.
func sample() (Info, Files) {
	files := Files{
		ConfigFile:             {Data: []byte("apiVersion: slipway.sh/v1\n")},
		"release/run.sh":       {Data: []byte("#!/bin/sh\n"), Executable: true},
		"release/p":            {Data: []byte{}},
		"run/report.json":      {Data: []byte(strings.Repeat("{\"a\": 1}\n", 300))},
		"run/steps/x.y/log.ü":  {Data: bytes.Repeat([]byte("waiting\n"), 5000)},
		"run/" + longName(180): {Data: []byte("long")},
	}
	return Info{
		Run: "20260102-030405-abcdef", Workflow: "install", Deployment: "shop", Provider: "local", Outcome: "failed", Code: "ORC-005",
		Started: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC), Platform: Platform{Name: "reference", Version: "1.0.0", Digest: "sha256:00"},
	}, files
}

func longName(n int) string { return strings.Repeat("n", n) }

// sign makes the signature of an index, of which a package knows no more than that it is text.
func sign(index []byte) ([]byte, error) { return []byte("of " + sum(index)), nil }

// verify takes what sign has made.
func verify(index, signature []byte) (by string, err error) {
	if want, _ := sign(index); !bytes.Equal(signature, want) {
		return "", errors.New("it is not signed with the key")
	}
	return "signed with the key", nil
}

func written(t *testing.T, info Info, files Files, sign func([]byte) ([]byte, error)) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, info, files, sign))
	return b.Bytes()
}

func file(t *testing.T, data []byte) string {
	t.Helper()
	f := filepath.Join(t.TempDir(), "run.tar.zst")
	require.NoError(t, os.WriteFile(f, data, 0o600))
	return f
}

func refused(t *testing.T, code fault.Code, data []byte, verify func(index, signature []byte) (string, error)) string {
	t.Helper()
	p, err := Read(file(t, data), verify)
	require.Nil(t, p)
	require.ErrorIs(t, err, &fault.Fault{Code: code}, "%v", err)
	return err.Error()
}

func TestAPackageIsReadAsItWasWritten(t *testing.T) {
	info, files := sample()
	data := written(t, info, files, sign)
	require.Equal(t, data, written(t, info, files, sign), "the same bytes")
	p, err := Read(file(t, data), verify)
	require.NoError(t, err)
	require.Equal(t, files, p.Files)
	info.Format = Format
	require.Equal(t, info, p.Info)
	require.Equal(t, "sha256:"+sum(data), p.Digest)
	require.True(t, p.Signed)
	require.Equal(t, "signed with the key", p.SignedBy)
	other := written(t, info, files, func([]byte) ([]byte, error) { return []byte("of another"), nil })
	require.Contains(t, refused(t, CodeSignature, other, verify), "it is not signed with the key")
	p, err = Read(file(t, other), nil)
	require.NoError(t, err)
	require.Empty(t, p.SignedBy, "nobody has looked")
	require.Error(t, Write(new(bytes.Buffer), info, files, func([]byte) ([]byte, error) { return nil, errors.New("no key") }))
	forged := info
	forged.Step = "x\nsigned with the key " + strings.Repeat("ab", 32)
	require.Contains(t, refused(t, CodeAltered, written(t, forged, files, nil), nil), "which cannot be printed")
	unsigned := written(t, info, files, nil)
	require.Equal(t, unsigned, written(t, info, files, nil))
	p, err = Read(file(t, unsigned), nil)
	require.NoError(t, err)
	require.False(t, p.Signed)
	require.Contains(t, refused(t, CodeSignature, unsigned, verify), "it is not signed")

	dir := t.TempDir()
	require.NoError(t, p.Sub(ReleaseDir).WriteTo(dir))
	stat, err := os.Stat(filepath.Join(dir, "run.sh"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), stat.Mode().Perm())
	require.ErrorIs(t, p.Sub(ReleaseDir).WriteTo(dir), os.ErrExist, "nothing is overwritten")
	again := Files{}
	require.NoError(t, again.Add(ReleaseDir, os.DirFS(dir)))
	require.Equal(t, files.Sub(ReleaseDir), again.Sub(ReleaseDir))
	require.Error(t, again.Add("x", fstest.MapFS{"link": {Mode: os.ModeSymlink}}))
}

// unpacked is the archive of a package.
func unpacked(t testing.TB, data []byte) []byte {
	t.Helper()
	d, err := zstd.NewReader(nil)
	require.NoError(t, err)
	defer d.Close()
	plain, err := d.DecodeAll(data, nil) // which skips the frame at the end
	require.NoError(t, err)
	return plain
}

// packed is a package with this archive, as somebody makes it who knows how.
func packed(t *testing.T, plain []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, compress(&b, plain))
	return b.Bytes()
}

// edited is a package in which change has replaced the entries.
func edited(t *testing.T, data []byte, change func(h *tar.Header, content []byte, put func(*tar.Header, []byte)), more ...func(*tar.Writer)) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	put := func(h *tar.Header, content []byte) {
		require.NoError(t, w.WriteHeader(h))
		_, err := w.Write(content)
		require.NoError(t, err)
	}
	for r := tar.NewReader(bytes.NewReader(unpacked(t, data))); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		var content bytes.Buffer
		_, err = content.ReadFrom(r)
		require.NoError(t, err)
		change(&tar.Header{Typeflag: h.Typeflag, Name: h.Name, Mode: h.Mode, Size: h.Size, ModTime: h.ModTime}, content.Bytes(), put)
	}
	for _, m := range more {
		m(w)
	}
	require.NoError(t, w.Close())
	return packed(t, b.Bytes())
}

// Whoever alters a file and makes a whole archive of it again is found out by name.
func TestEveryFileThatIsAlteredIsNamed(t *testing.T) {
	info, files := sample()
	data := written(t, info, files, sign)
	for _, name := range append(files.names(), IndexFile) {
		altered := edited(t, data, func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
			if h.Name == name {
				content = append(bytes.Clone(content), 'x')
				h.Size++
			}
			put(h, content)
		})
		require.Contains(t, refused(t, CodeAltered, altered, nil), name+": it was altered", "added to")
		if len(files[name].Data) > 0 {
			flipped := edited(t, data, func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
				if h.Name == name {
					content = bytes.Clone(content)
					content[len(content)/2] ^= 1
				}
				put(h, content)
			})
			require.Contains(t, refused(t, CodeAltered, flipped, nil), name+": it was altered: its sha256", "flipped")
		}
		gone := edited(t, data, func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
			if h.Name != name {
				put(h, content)
			}
		})
		require.Contains(t, refused(t, CodeAltered, gone, nil), name+": it is missing")
		twice := edited(t, data, func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
			put(h, content)
			if h.Name == name {
				put(h, content)
			}
		})
		require.Contains(t, refused(t, CodeAltered, twice, nil), "it is there twice")
	}
	for says, change := range map[string]func(h *tar.Header, content []byte, put func(*tar.Header, []byte)){
		"it is not signed with the key": func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
			if h.Name == SignatureFile {
				content[0] ^= 1
			}
			put(h, content)
		},
		"it is not signed": func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
			if h.Name != SignatureFile {
				put(h, content)
			}
		},
	} {
		require.Contains(t, refused(t, CodeSignature, edited(t, data, change), verify), says)
	}
	require.Contains(t, refused(t, CodeAltered, edited(t, data, func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
		put(h, content)
		if h.Name == SignatureFile {
			put(h, content)
		}
	}), nil), "it is there twice")
	same := func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) { put(h, content) }
	for name, says := range map[string]string{
		"run/more.txt": "run/more.txt: it was added", "../evil": `"../evil": its name would lead out`, "/etc/evil": `"/etc/evil": its name would lead out`,
		"a/../../b": "would lead out", `a\..\b`: "would lead out", "run/report.json/x": `"run/report.json" is a file`, "c:evil": "would lead out",
		longName(2000): "its name is too long",
	} {
		added := edited(t, data, same, func(w *tar.Writer) {
			require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644}))
		})
		require.Contains(t, refused(t, CodeAltered, added, nil), says)
	}
	link := edited(t, data, same, func(w *tar.Writer) {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: "run/link", Linkname: "/etc/passwd"}))
	})
	require.Contains(t, refused(t, CodeAltered, link, nil), `"run/link": it is no plain file`)
	repacked := func(more string) []byte { // as tar -c does it
		return edited(t, data, same, func(w *tar.Writer) {
			for _, dir := range []string{"release/", "run/", "run/steps/a.b/"} {
				require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: dir, Mode: 0o755}))
			}
			if more != "" {
				require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: more, Mode: 0o644}))
			}
		})
	}
	says := refused(t, CodeAltered, repacked("run/more.txt"), nil)
	require.Contains(t, says, "run/more.txt: it was added")
	require.NotContains(t, says, "release/: it was added", "a directory is no file that was added")
	require.Contains(t, refused(t, CodeAltered, repacked(""), nil), `"release/": it is no plain file`)
	out := edited(t, data, same, func(w *tar.Writer) {
		require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "../evil/", Mode: 0o755}))
	})
	require.Contains(t, refused(t, CodeAltered, out, nil), `"../evil/": its name would lead out`)
	mode := edited(t, data, func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
		if h.Name == "release/run.sh" {
			h.Mode = 0o644
		}
		put(h, content)
	})
	require.Contains(t, refused(t, CodeAltered, mode, nil), "release/run.sh: it was altered: whether it is executable")
	late := edited(t, data, func(h *tar.Header, content []byte, put func(*tar.Header, []byte)) {
		h.ModTime = h.ModTime.Add(time.Hour)
		put(h, content)
	})
	require.Contains(t, refused(t, CodeAltered, late, nil), "the attributes")
	require.Contains(t, refused(t, CodeAltered, packed(t, append(unpacked(t, data), 0)), nil), "the padding")
}

// A byte that changes, comes or goes anywhere in the file is noticed, unless it means nothing to zstd.
func TestAnyByteOfTheFile(t *testing.T) {
	info, files := sample()
	data := written(t, info, files, nil)
	at := []int{0, 4, 5, len(data) - 1}
	for range 200 {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(data))))
		require.NoError(t, err)
		at = append(at, int(n.Int64()))
	}
	for _, i := range at {
		flipped := bytes.Clone(data)
		flipped[i] ^= 1 << (i % 8)
		added := append(append(bytes.Clone(data[:i]), 7), data[i:]...)
		removed := append(bytes.Clone(data[:i]), data[i+1:]...)
		cut := data[:i]
		for what, bad := range map[string][]byte{"flipped": flipped, "added": added, "removed": removed, "cut": cut} {
			p, err := Read(file(t, bad), nil)
			if err == nil {
				require.Equal(t, "flipped", what, "at %d", i)
				require.Equal(t, files, p.Files, "at %d", i)
				require.NotEqual(t, "sha256:"+sum(data), p.Digest)
				continue
			}
			require.Nil(t, p, "%s at %d", what, i)
			require.ErrorAs(t, err, new(*fault.Fault), "%s at %d", what, i)
			if i >= len(magic) {
				require.ErrorIs(t, err, &fault.Fault{Code: CodeAltered}, "%s at %d", what, i)
			}
		}
	}
	require.Contains(t, refused(t, CodeAltered, append(bytes.Clone(data), 0), nil), "the archive: it cannot be read after")
	require.Contains(t, refused(t, CodeAltered, data[:len(data)/2], nil), "the archive: it cannot be read after")
}

func TestWhatIsNoPackage(t *testing.T) {
	_, err := Read(filepath.Join(t.TempDir(), "none.tar.zst"), nil)
	require.ErrorIs(t, err, &fault.Fault{Code: CodeUnreadable})
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Read(t.TempDir(), nil)
	require.ErrorContains(t, err, "it is no plain file")
	require.Contains(t, refused(t, CodeUnreadable, []byte("apiVersion: slipway.sh/v1\n"), nil), "it is no run package")
	require.Contains(t, refused(t, CodeUnreadable, nil, nil), "it is no run package")

	// Of a newer version: the same, but for what it says of itself.
	info, files := sample()
	s := state(info, files)
	s.Format = Format + 1
	index, err := s.encode()
	require.NoError(t, err)
	var plain bytes.Buffer
	require.NoError(t, archive(&plain, info.Started, index, nil, files))
	require.Contains(t, refused(t, CodeUnreadable, packed(t, plain.Bytes()), nil), "it is of format 2, this program reads 1")
}

// A small file that unpacks to a huge one does not fill the memory.
func TestABombIsRefused(t *testing.T) {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(window))
	require.NoError(t, err)
	zeros := make([]byte, 1<<20)
	frame := e.EncodeAll(zeros, nil)
	bomb := bytes.Repeat(frame, maxTotal>>20+1)
	require.Less(t, len(bomb), 1<<20)
	require.Contains(t, refused(t, CodeAltered, bomb, nil), "larger than 256 MiB")

	require.ErrorContains(t, new(archived).read(bytes.NewReader(sizeOf(t, 1<<40))), "it is larger than a package may be")
}

// A package of zeros takes no more memory than what is in it.
func TestAPackageOfZeros(t *testing.T) {
	const size = 200 << 20
	info, _ := sample()
	data := written(t, info, Files{"run/zeros": {Data: make([]byte, size)}}, nil)
	require.Less(t, len(data), 1<<20)
	file := file(t, data)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p, err := Read(file, nil)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Len(t, p.Files["run/zeros"].Data, size)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(size+size/4), "bytes allocated")
}

// sizeOf is an archive whose entry says that it is that large.
func sizeOf(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, tar.NewWriter(&b).WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "run/huge", Mode: 0o644, Size: n}))
	return b.Bytes()
}

func TestNoPackageOfWrongNames(t *testing.T) {
	info, _ := sample()
	for _, files := range []Files{{"../x": {}}, {IndexFile: {}}, {SignatureFile: {}}, {"a": {}, "a/b": {}}, {"a\nb": {}}} {
		require.Error(t, Write(new(bytes.Buffer), info, files, nil))
	}
	require.Error(t, Files{"../x": {}}.WriteTo(t.TempDir()))
}
