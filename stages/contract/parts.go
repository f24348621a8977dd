package contract

import (
	"errors"
	"fmt"
	"io/fs"
	"unicode/utf8"

	"github.com/slipway-sh/slipway/bounded"
)

// partSize is how long a secret of the engine may be, in bytes (Client.SetSecret of
// dagger.io/dagger v0.20.8; it mounts none of more than 500 KiB).
const partSize = 128000

// Parts splits text, which is UTF-8, into the files that a container gets in place of file:
// each fits into a secret of the engine, which is the only argument that it shows to nobody.
// ReadParts puts them together.
func Parts(file, text string) map[string]string {
	out := map[string]string{}
	for n := 0; n == 0 || text != ""; n++ {
		end := min(len(text), partSize)
		for end < len(text) && !utf8.RuneStart(text[end]) {
			end--
		}
		out[part(file, n)], text = text[:end], text[end:]
	}
	return out
}

// part is the name of a part of file: file itself, then file.1 and so on.
func part(file string, n int) string {
	if n == 0 {
		return file
	}
	return fmt.Sprintf("%s.%d", file, n)
}

// ReadParts returns the text that Parts split.
func ReadParts(file string) ([]byte, error) {
	text, err := bounded.File(file, bounded.Generated)
	for n := 1; err == nil; n++ {
		var more []byte
		more, err = bounded.File(part(file, n), bounded.Generated)
		text = append(text, more...)
		if errors.Is(err, fs.ErrNotExist) {
			return text, nil
		}
	}
	return nil, err
}
