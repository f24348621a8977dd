package runpackage

import (
	"archive/tar"
	"bytes"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/bounded"
)

// indexed is a package with these files, whose index says what change makes of it.
func indexed(t *testing.T, info Info, files Files, change func(*index)) []byte {
	t.Helper()
	s := state(info, files)
	change(&s)
	text, err := s.encode()
	require.NoError(t, err)
	var plain bytes.Buffer
	require.NoError(t, archive(&plain, info.Started, text, nil, files))
	return packed(t, plain.Bytes())
}

// What somebody made to fill memory, disk or screen is refused, and the error names the limit and
// is no longer than a page or two.
func TestLimitsOfAPackage(t *testing.T) {
	info, few := sample()
	many := func(n int, name func(i int) string) Files {
		files := Files{}
		for i := range n {
			files[name(i)] = File{Data: []byte{}}
		}
		return files
	}
	large := func(name string, size int) Files { return Files{name: {Data: make([]byte, size)}} }
	for says, files := range map[string]Files{
		`"config.yaml": it has 1048577 bytes, and may have 1 MiB`:        large(ConfigFile, bounded.Written+1),
		`"before/config.yaml": it has 1048577 bytes, and may have 1 MiB`: large(BeforeDir+"/"+ConfigFile, bounded.Written+1),
		`"run/report.json": it has 67108865 bytes, and may have 64 MiB`:  large("run/report.json", bounded.Generated+1),
		`"index.json": it has`:                     many(30_000, func(i int) string { return fmt.Sprintf("x/%01000d", i) }),
		"it is in more than 32 folders":            many(1, func(int) string { return strings.Repeat("d/", 33) + "x" }),
		"it has more than 50000 files and folders": many(2000, func(i int) string { return fmt.Sprintf("%d/", i) + strings.Repeat("d/", 30) + "x" }),
		"it has more than 50000 files":             many(50_001, func(i int) string { return fmt.Sprint(i) }),
		"and more than these 100 problems":         both(many(300, func(i int) string { return "x" + strings.Repeat("/d", i%20) }), many(300, func(i int) string { return fmt.Sprintf("x/%d", i) })),
	} {
		got := refused(t, CodeAltered, indexed(t, info, files, func(*index) {}), nil)
		require.Contains(t, got, says)
		require.Less(t, len(got), 100_000)
		require.Error(t, Write(new(bytes.Buffer), info, files, nil), "it is not written, either")
	}
	for says, change := range map[string]func(*Info){
		"more than 1000 hidden settings": func(i *Info) { i.Hidden = make([]string, 1001) },
		"may have texts of 4096":         func(i *Info) { i.Run = strings.Repeat("r", 1<<20) },
	} {
		info := info
		change(&info)
		got := refused(t, CodeAltered, indexed(t, info, few, func(*index) {}), nil)
		require.Contains(t, got, says)
		require.Less(t, len(got), 10_000)
		require.ErrorContains(t, Write(new(bytes.Buffer), info, few, nil), says)
	}
	long := strings.Repeat("\x01", 1<<20)
	require.Less(t, len(refused(t, CodeAltered, indexed(t, info, few, func(x *index) { x.Files[0].Name = long }), nil)), 10_000)
}

func both(files, others Files) Files {
	maps.Copy(files, others)
	return files
}

// Entries that are no files of a package have limits, too.
func TestLimitsOfAnArchive(t *testing.T) {
	made := func(put func(w *tar.Writer)) string {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		put(w)
		require.NoError(t, w.Close())
		return refused(t, CodeAltered, packed(t, b.Bytes()), nil)
	}
	got := made(func(w *tar.Writer) {
		for range maxFiles + 3 {
			require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "d/"}))
		}
	})
	require.Equal(t, 1, strings.Count(got, "it has more than 50000 files"))
	got = made(func(w *tar.Writer) {
		for range 3 {
			require.NoError(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: strings.Repeat("\x01", 1<<19), Format: tar.FormatPAX}))
		}
	})
	require.Contains(t, got, "its name is too long: 524288 bytes, and at most 1024")
	require.Less(t, len(got), 30_000)
}

// What a decoder quotes of an index is told in part.
func TestErrorsOfAnIndexAreShort(t *testing.T) {
	_, files := sample()
	for _, member := range []string{`{"format":` + strings.Repeat("9", 1<<20) + `}`, `{"started":"` + strings.Repeat("9", 1<<20) + `"}`} {
		var plain bytes.Buffer
		info, _ := sample()
		require.NoError(t, archive(&plain, info.Started, []byte(member), nil, files))
		require.Less(t, len(refused(t, CodeAltered, packed(t, plain.Bytes()), nil)), 10_000)
	}
}
