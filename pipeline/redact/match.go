package redact

import (
	"bytes"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// part is a part of a text: from one offset to another.
type part struct{ from, to int }

// find returns the parts of s that are secrets, in order and apart from each other: of s as it
// is, and of what a terminal shows of it.
func (r *Secrets) find(s string) []part {
	found := r.literal(s)
	shown := flat{text: s}
	if !plain(s) || strings.IndexByte(s, '\\') >= 0 {
		shown = strip(s, true)
		found = append(found, shown.hidden(r.literal(shown.text))...)
	}
	if len(r.wrapped) > 0 {
		f, dumps := flatten(shown.text)
		parts := f.origin(r.wrapped.find(f.text))
		for i, p := range parts {
			parts[i] = withLine(dumps, p)
		}
		found = append(found, shown.hidden(parts)...)
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
type index map[string][]string

func (x *index) add(text string) {
	if *x == nil {
		*x = index{}
	}
	key := text[:keyBytes]
	if !slices.Contains((*x)[key], text) {
		(*x)[key] = append((*x)[key], text)
	}
}

func (x index) find(s string) []part {
	var found []part
	for i := 0; len(x) > 0 && i+keyBytes <= len(s); i++ {
		for _, text := range x[s[i:i+keyBytes]] {
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
		for _, text := range x[s[i:i+keyBytes]] {
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

// flat is a text of which something is left out.
type flat struct {
	text string
	at   []int // where each byte of text is in the original; nil: nothing is left out
}

// origin returns where parts are in the original.
func (f flat) origin(parts []part) []part {
	if f.at == nil {
		return parts
	}
	for i, p := range parts {
		parts[i] = part{f.at[p.from], f.at[p.to-1] + 1}
	}
	return parts
}

// hidden is origin with what is left out before each part: a character that the first one
// strikes over.
func (f flat) hidden(parts []part) []part {
	if f.at == nil {
		return parts
	}
	for i, p := range parts {
		from := 0
		if p.from > 0 {
			from = f.at[p.from-1] + 1
		}
		parts[i] = part{from, f.at[p.to-1] + 1}
	}
	return parts
}

// dump matches a line of a dump of 16 bytes at most in hexadecimal numbers: an offset, the
// numbers of bytes or words, and mostly the text that they stand for.
var dump = regexp.MustCompile(`(?m)^[ \t]*(?:0[xX])?[0-9a-fA-F]{4,16}:?[ \t]+(` +
	`(?:[0-9a-fA-F]{8}(?: {1,2}|$)){1,4}|(?:[0-9a-fA-F]{4}(?: {1,2}|$)){1,8}(?:[0-9a-fA-F]{2}(?: |$))?|(?:[0-9a-fA-F]{2}(?: {1,2}|$)){1,16})(?:[ \t]*\S.*|[ \t]*)$`)

// dumped is a line of a dump.
type dumped struct{ line, numbers part }

// flatten leaves out what stands between the parts of a text that was wrapped or split: left
// is what encodings and most passwords consist of, and only the numbers of dumps.
func flatten(s string) (f flat, dumps []dumped) {
	var b strings.Builder
	b.Grow(len(s))
	f.at = make([]int, 0, len(s))
	add := func(p part) {
		for i := p.from; i < p.to; i++ {
			switch c := s[i]; {
			case c == '\\':
				for i+1 < p.to && s[i+1] == '\\' {
					i++
				}
				if i+1 < p.to && strings.IndexByte("nrt", s[i+1]) >= 0 {
					i++ // a line break in a quoted text
				}
			case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("+/=-_", c) >= 0:
				b.WriteByte(c)
				f.at = append(f.at, i)
			}
		}
	}
	last := 0
	for _, m := range dump.FindAllStringSubmatchIndex(s, -1) {
		d := dumped{part{m[0], m[1]}, part{m[2], m[3]}}
		add(part{last, d.line.from})
		add(d.numbers)
		last = d.line.to
		dumps = append(dumps, d)
	}
	add(part{last, len(s)})
	f.text = b.String()
	return f, dumps
}

// withLine returns p and, where it ends in a line of a dump, the rest of that: it has the
// same in plain text.
func withLine(dumps []dumped, p part) part {
	i := sort.Search(len(dumps), func(i int) bool { return dumps[i].line.to >= p.to })
	if i < len(dumps) && dumps[i].line.from < p.to {
		p.to = dumps[i].line.to
	}
	return p
}

// whole returns the length of the lines in b after which no secret goes on in the next line.
func (r *Secrets) whole(b []byte) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	end := bytes.LastIndexByte(b, '\n') + 1
	if end == 0 || len(r.wrapped) == 0 {
		return end
	}
	shown := strip(string(b[:end]), true)
	f, _ := flatten(shown.text)
	if i := r.wrapped.begun(f.text); i < len(f.text) {
		return bytes.LastIndexByte(b[:shown.at[f.at[i]]], '\n') + 1
	}
	return end
}

// continues reports whether b has something with which a wrapped secret may go on.
func continues(b []byte) bool {
	f, _ := flatten(strip(string(b), true).text)
	return f.text != ""
}
