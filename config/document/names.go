package document

import (
	"math"
	"slices"
	"strings"
)

// Unknown is the value of Problem.Got for an unknown field.
const Unknown = "an unknown field"

// NoField returns the problem of a field that the mapping at path does not have, without
// a line. names are the fields of that mapping.
func NoField(path, name string, names []string) Problem {
	p := Problem{Field: join(path, name), Got: Unknown}
	names = slices.Sorted(slices.Values(names))
	if short, _, ok := strings.Cut(name, ":"); ok && slices.Contains(names, short) {
		p.Want, p.Meant = Quote(short)+" with a space after the colon", join(path, short)
	} else if best := Nearest(name, names); best != "" {
		p.Want, p.Meant = Quote(best), join(path, best)
	} else if len(names) == 1 {
		p.Want = Quote(names[0])
	} else {
		p.Want = "one of " + strings.Join(names, ", ")
	}
	return p
}

// In describes where a field belongs.
func In(field string) string {
	at := strings.LastIndexByte(field, '.')
	if at < 0 {
		return Quote(field)
	}
	return Quote(field[at+1:]) + " in the mapping " + field[:at]
}

// Nearest returns the name that was probably meant; empty if none is close enough.
func Nearest(name string, names []string) string {
	best, far := "", 1+max(1, len(name)/3)
	for _, n := range names {
		if dist := distance(strings.ToLower(name), strings.ToLower(n)); dist < far {
			best, far = n, dist
		}
	}
	return best
}

// distance returns how many characters must be changed, added, removed or swapped with
// their neighbour to turn a into b.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if len(x) > 64 || len(y) > 64 {
		return math.MaxInt
	}
	rows := make([][]int, len(x)+1)
	for i := range rows {
		rows[i] = make([]int, len(y)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(x); i++ {
		for j := 1; j <= len(y); j++ {
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differ(x[i-1], y[j-1]))
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(x)][len(y)]
}

func differ(a, b rune) int {
	if a != b {
		return 1
	}
	return 0
}
