package redact

import (
	"bytes"
	"slices"
	"strings"
)

// part is a part of a text: from one offset to another.
type part struct{ from, to int }

// find returns the parts of s that are secrets, in order and apart from each other.
func (r *Secrets) find(s string) []part {
	found := r.literal(s)
	if len(r.wrapped) > 0 {
		f := flatten(s)
		found = append(found, f.origin(r.wrapped.find(f.text))...)
	}
	if len(r.dumped) > 0 {
		f := digits(s)
		found = append(found, f.origin(r.dumped.find(f.text))...)
		for _, f := range dumps(s) {
			found = append(found, withLines(s, f.origin(r.dumped.find(f.text)))...)
		}
	}
	return union(found)
}

// literal returns the parts of s that are secrets in one piece.
func (r *Secrets) literal(s string) []part {
	found := r.exact.find(s)
	for _, f := range r.escaped {
		found = append(found, f.find(s)...)
	}
	return found
}

// union joins the parts that overlap or touch.
func union(parts []part) []part {
	slices.SortFunc(parts, func(a, b part) int { return a.from - b.from })
	out := parts[:0]
	for _, p := range parts {
		if last := len(out) - 1; last >= 0 && p.from <= out[last].to {
			out[last].to = max(out[last].to, p.to)
			continue
		}
		out = append(out, p)
	}
	return out
}

// keyBytes is how many bytes at its beginning an index finds a text by; no secret is shorter.
const keyBytes = 4

// index finds texts of at least keyBytes in others, in a time that hardly depends on how many
// they are.
type index map[[keyBytes]byte][]string

func key(s string) [keyBytes]byte { return [keyBytes]byte([]byte(s[:keyBytes])) }

func (x *index) add(text string) {
	if *x == nil {
		*x = index{}
	}
	key := key(text)
	if !slices.Contains((*x)[key], text) {
		(*x)[key] = append((*x)[key], text)
	}
}

func (x index) find(s string) []part {
	var found []part
	for i := 0; len(x) > 0 && i+keyBytes <= len(s); i++ {
		for _, text := range x[key(s[i:])] {
			if strings.HasPrefix(s[i:], text) {
				found = append(found, part{i, i + len(text)})
			}
		}
	}
	return found
}

// begun returns where the end of s is the beginning of one of the texts, of at least keyBytes;
// len(s) if it is of none.
func (x index) begun(s string) int {
	for i := 0; len(x) > 0 && i+keyBytes <= len(s); i++ {
		for _, text := range x[key(s[i:])] {
			if len(text) > len(s)-i && strings.HasPrefix(text, s[i:]) {
				return i
			}
		}
	}
	return len(s)
}

// minWrapped is from which length on a form is also found where it is wrapped or split: words
// that follow each other by chance make no form of that length.
const minWrapped = 12

// addWrapped adds text, and what may be left of it: a line that ends with less than keyBytes of
// it is not held back.
func (x *index) addWrapped(text string) {
	for _, t := range []string{text, text[min(keyBytes-1, len(text)):]} {
		if len(t) >= minWrapped {
			x.add(t)
		}
	}
}

// flat is a text from which something is left out.
type flat struct {
	text string
	at   []int // where each byte of text is in the original
}

// origin returns where parts are in the original.
func (f flat) origin(parts []part) []part {
	for i, p := range parts {
		parts[i] = part{f.at[p.from], f.at[p.to-1] + 1}
	}
	return parts
}

// flatten leaves out what stands between the parts of a text that was wrapped or split: left
// is what encodings and most passwords consist of.
func flatten(s string) flat {
	var b strings.Builder
	b.Grow(len(s))
	at := make([]int, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\':
			for i+1 < len(s) && s[i+1] == '\\' {
				i++
			}
			if i+1 < len(s) && strings.IndexByte("nrt", s[i+1]) >= 0 {
				i++ // a line break in a quoted text
			}
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("+/=-_", c) >= 0:
			b.WriteByte(c)
			at = append(at, i)
		}
	}
	return flat{b.String(), at}
}

// whole returns the length of the lines in b after which no secret goes on in the next line.
func (r *Secrets) whole(b []byte) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	end := bytes.LastIndexByte(b, '\n') + 1
	if end == 0 || len(r.wrapped) == 0 {
		return end
	}
	shown := strip(string(b[:end]), true) // which has the same lines
	wait := func(x index, f flat) {
		if i := x.begun(f.text); i < len(f.text) {
			end = min(end, lineStart(b, strings.Count(shown[:f.at[i]], "\n")))
		}
	}
	wait(r.wrapped, flatten(shown))
	wait(r.dumped, digits(shown))
	for _, f := range dumps(shown) {
		wait(r.dumped, f)
	}
	return end
}

// lineStart returns where a line of b begins; the first is 0.
func lineStart(b []byte, line int) int {
	at := 0
	for range line {
		at += bytes.IndexByte(b[at:], '\n') + 1
	}
	return at
}

// continues reports whether b has something with which a wrapped secret may go on.
func continues(b []byte) bool {
	return flatten(strip(string(b), true)).text != ""
}
