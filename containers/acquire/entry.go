package acquire

import (
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/slipway-sh/slipway/containers/bundle"
)

// enter names the image in the bundle's index. If its archive was listed, another
// reference was of the same image, which then stands for both.
func (a *adder) enter(r Request, f *found, file bundle.File, listed bool) error {
	index := a.bundle.Index
	index.Files, index.Images = slices.Clone(index.Files), slices.Clone(index.Images)
	key := r.key()
	for n := range index.Images {
		i := &index.Images[n]
		i.StandsFor = slices.DeleteFunc(slices.Clone(i.StandsFor), func(s string) bool { return s == key })
		if i.Added() && i.Name == key && len(i.StandsFor) > 0 {
			i.Name = i.StandsFor[0]
		}
	}
	at := slices.IndexFunc(index.Images, func(i bundle.Image) bool { return i.Archive == file.Path })
	if listed && at >= 0 {
		index.Images[at].StandsFor = append(index.Images[at].StandsFor, key)
	} else {
		index.Files = append(index.Files, file)
		index.Images = append(index.Images, bundle.Image{
			Name: key, Ref: r.ref(f), Digest: f.digest(), Index: f.indexDigest(), Archive: file.Path, StandsFor: []string{key},
		})
	}
	// Images that stand for nothing any longer go, with their archives.
	var gone []string
	index.Images = slices.DeleteFunc(index.Images, func(i bundle.Image) bool {
		unused := i.Added() && len(i.StandsFor) == 0
		if unused {
			gone = append(gone, i.Archive)
		}
		return unused
	})
	index.Files = slices.DeleteFunc(index.Files, func(f bundle.File) bool { return slices.Contains(gone, f.Path) })
	if err := a.writeIndex(index); err != nil {
		return err
	}
	for _, name := range gone {
		if err := os.Remove(a.bundle.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return unwritable(err)
		}
	}
	return nil
}
