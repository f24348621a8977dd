package redact

import "strings"

// digits leaves out of s all but hexadecimal digits, and the sign of such numbers ("0x2a"): what
// separates the numbers of bytes is different everywhere.
func digits(s string) flat {
	b, at := make([]byte, 0, len(s)), make([]int, 0, len(s))
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '0' && i+1 < len(s) && s[i+1] == 'x':
			i++
		case isHex(s[i : i+1]):
			b, at = append(b, s[i]|' '), append(at, i) // in lower case
		}
	}
	return flat{string(b), at}
}

// dumps returns the hexadecimal digits of the dumps in s in the order in which they stand there,
// and with the bytes of each group reversed, as most machines have those of words. Other lines
// are a line break.
func dumps(s string) [2]flat {
	var bytes, reversed []byte
	var at []int
	for from := 0; from < len(s); {
		end := lineEnd(s, from)
		groups := numbers(s[from:end])
		if n := len(at); len(groups) == 0 && n > 0 && bytes[n-1] != '\n' {
			bytes, reversed, at = append(bytes, '\n'), append(reversed, '\n'), append(at, from)
		}
		for _, g := range groups {
			for i := range g.len() {
				bytes = append(bytes, s[from+g.from+i]|' ')
				reversed = append(reversed, s[from+g.to-1-(i^1)]|' ')
				at = append(at, from+groups[0].from)
			}
		}
		from = end + 1
	}
	return [2]flat{{string(bytes), at}, {string(reversed), at}}
}

// withLines returns parts with the rest of the lines in which they end: of a dump, that is more
// numbers, and mostly the text that they stand for.
func withLines(s string, parts []part) []part {
	for i, p := range parts {
		parts[i].to = lineEnd(s, p.to)
	}
	return parts
}

// lineEnd returns where the line of s ends that goes on at i.
func lineEnd(s string, i int) int {
	if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(s)
}

// numbers returns where the digits of the groups are in a line of a dump: after its offset, if
// it has one. All groups are of the same even length, but the last may be shorter. What follows
// them is text, which may look like a group.
func numbers(line string) (groups []part) {
	f, size := part{}, 0
	for size == 0 {
		if f = field(line, f.to); f.from == len(line) {
			return nil
		}
		size = group(line, f).len()
		next := field(line, f.to)
		if n := group(line, next).len(); n > 0 && n != size && isOffset(line[f.from:f.to]) {
			f, size = next, n
		}
	}
	for g := group(line, f); g.len() > 0 && g.len() <= size; g = group(line, f) {
		groups = append(groups, g)
		next := field(line, f.to)
		gap := next.from - f.to
		switch {
		case g.len() < size:
			return groups
		case gap == 1, gap == 4 && size == 4: // hexdump -x
		case gap == 2 && size == 2 && len(groups) == 8: // hexdump -C
		case gap+next.len() == 1+f.len(): // the last one, to the right: xxd -e
		default:
			return groups
		}
		f = next
	}
	return groups
}

func (p part) len() int { return p.to - p.from }

// field returns the first field of line that begins at from or after it: what is between blanks.
func field(line string, from int) part {
	for from < len(line) && (line[from] == ' ' || line[from] == '\t') {
		from++
	}
	to := from
	for to < len(line) && line[to] != ' ' && line[to] != '\t' {
		to++
	}
	return part{from, to}
}

// group returns f if it is a group; empty if it is none.
func group(line string, f part) part {
	if f.len()%2 > 0 || !isHex(line[f.from:f.to]) {
		return part{}
	}
	return f
}

// isOffset reports whether a field is the number before the groups.
func isOffset(field string) bool {
	return isHex(strings.TrimSuffix(strings.TrimPrefix(field, "0x"), ":"))
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c|' ' < 'a' || c|' ' > 'f') {
			return false
		}
	}
	return true
}
