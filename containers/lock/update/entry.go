package update

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-sh/slipway/containers/lock"
)

// Enter adds the findings without a problem to the text of lock.yaml and leaves
// everything else as it is. The result is a valid lock.
func Enter(text []byte, findings []Finding) ([]byte, error) {
	lines := strings.Split(string(text), "\n")
	for _, f := range findings {
		if f.Problem != "" {
			continue
		}
		var err error
		if lines, err = f.enter(lines); err != nil {
			return nil, fmt.Errorf("enter %s into lock.yaml: %w", f.Name, err)
		}
	}
	result := []byte(strings.Join(lines, "\n"))
	if _, err := lock.Parse(result); err != nil {
		return nil, fmt.Errorf("enter into lock.yaml: %w", err)
	}
	return result, nil
}

func (f Finding) enter(lines []string) ([]string, error) {
	section, block, place, digest := "tools:", "    release:", "url", "sha256"
	if f.Image {
		section, block, place, digest = "images:", "    registry:", "ref", "digest"
	}
	begin := slices.Index(lines, section)
	if begin < 0 {
		return nil, fmt.Errorf("there is no %s", section)
	}
	item := slices.Index(lines[begin:], "  - name: "+f.Name)
	if item < 0 {
		return nil, fmt.Errorf("%s does not list it", section)
	}
	// The item's lines are those that are indented deeper than its dash.
	at := begin + item + 1
	end := at
	for end < len(lines) && strings.HasPrefix(lines[end], "    ") {
		end++
	}
	entry := []string{
		"      " + f.Platform + ":",
		"        " + place + ": " + f.Place,
		"        " + digest + ": " + f.Digest,
		"        sources:",
	}
	for _, s := range f.Sources {
		if strings.ContainsAny(s, ":#'\"{}[]") {
			s = strconv.Quote(s)
		}
		entry = append(entry, "          - "+s)
	}
	if header := slices.Index(lines[at:end], block); header >= 0 {
		return slices.Insert(lines, at+header+1, entry...), nil
	}
	return slices.Insert(lines, end, append([]string{block}, entry...)...), nil
}
