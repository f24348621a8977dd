package redact_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

// dumper is how a tool dumps bytes.
type dumper struct {
	width, size int    // how many bytes are in a line, and in a group
	offset      string // the format of the number before the groups
	between     string // of groups
	middle      string // after eight of them
	reversed    bool   // as words of a machine
	zeros       bool   // fill the last group
	right       bool   // the last group is aligned to the right
	text        string // the format of the text column
}

var dumpers = map[string]dumper{
	"hexdump":             {width: 16, size: 2, offset: "%07x ", between: " ", reversed: true, zeros: true},
	"hexdump -C":          {width: 16, size: 1, offset: "%08x  ", between: " ", middle: " ", text: "  |%s|"},
	"hexdump -x":          {width: 16, size: 2, offset: "%07x    ", between: "    ", reversed: true, zeros: true},
	"od -x":               {width: 16, size: 2, offset: "%07o ", between: " ", reversed: true, zeros: true},
	"od -tx1 -w20":        {width: 20, size: 1, offset: "%07o ", between: " "},
	"od -tx1z -w40":       {width: 40, size: 1, offset: "%07o ", between: " ", text: "  >%s<"},
	"od -tx4z":            {width: 16, size: 4, offset: "%07o ", between: " ", reversed: true, zeros: true, text: "  >%s<"},
	"od -tx8z":            {width: 16, size: 8, offset: "%07o ", between: " ", reversed: true, zeros: true, text: "  >%s<"},
	"od -A x -t x1z":      {width: 16, size: 1, offset: "%06x ", between: " ", text: "  >%s<"},
	"od -An -t x1":        {width: 16, size: 1, offset: " ", between: " "},
	"od -An -t x1z":       {width: 16, size: 1, offset: " ", between: " ", text: "  >%s<"},
	"od -An -t x4":        {width: 16, size: 4, offset: " ", between: " ", reversed: true, zeros: true},
	"xxd -p -c 8":         {width: 8, size: 8, between: " "},
	"xxd -e":              {width: 16, size: 4, offset: "%08x: ", between: " ", reversed: true, right: true, text: "  %s"},
	"xxd -e -g8":          {width: 16, size: 8, offset: "%08x: ", between: " ", reversed: true, right: true, text: "  %s"},
	"xxd, after a name":   {width: 16, size: 2, offset: "[pod/web/main] %08x: ", between: " ", text: "  %s"},
	"xxd, in a colour":    {width: 16, size: 1, offset: "%08x: \x1b[1;32m", between: " ", text: "\x1b[0m  %s"},
	"tcpdump -X":          {width: 16, size: 2, offset: "\t0x%04x:  ", between: " ", text: "  %s"},
	"hexdump -C, 8 bytes": {width: 8, size: 1, offset: "%08x  ", between: " ", text: "  |%s|"},
}

// lines returns the lines of a dump of data, without their offsets, and those.
func (d dumper) lines(data []byte) (offsets, lines []string) {
	column := len(d.groups(make([]byte, d.width)))
	for at := 0; at < len(data); at += d.width {
		b := data[at:min(at+d.width, len(data))]
		offset, groups, text := d.offset, d.groups(b), d.text
		if strings.Contains(offset, "%") {
			offset = fmt.Sprintf(offset, at)
		}
		if text != "" {
			text = strings.Repeat(" ", column-len(groups)) + fmt.Sprintf(text, b)
		}
		offsets, lines = append(offsets, offset), append(lines, groups+text+"\n")
	}
	return offsets, lines
}

// groups returns the numbers of a line.
func (d dumper) groups(b []byte) string {
	var groups strings.Builder
	for i, group := range slices.Collect(slices.Chunk(slices.Clone(b), d.size)) {
		if d.zeros {
			group = append(slices.Clone(group), make([]byte, d.size-len(group))...)
		}
		if d.reversed {
			slices.Reverse(group)
		}
		if i > 0 {
			groups.WriteString(d.between)
		}
		if i == 8 {
			groups.WriteString(d.middle)
		}
		if d.right {
			groups.WriteString(strings.Repeat("  ", d.size-len(group)))
		}
		fmt.Fprintf(&groups, "%x", group)
	}
	return groups.String()
}

// TestDumpsAreMasked: of the lines that have something of the secret, nothing but the offset of
// the first one is left.
func TestDumpsAreMasked(t *testing.T) {
	all := maps.Clone(dumpers)
	for _, width := range []int{8, 16, 17, 20, 24, 32, 40} {
		for _, size := range []int{1, 2, 3, 4, 8, 16} {
			all[fmt.Sprintf("xxd -c %d -g %d", width, size)] = dumper{width: width, size: size, offset: "%08x: ", between: " ", text: "  %s"}
		}
	}
	for name, d := range all {
		for _, secret := range []string{"canary-7f3a91", "canary-7f3a91-XyZw_q", "Qx9LmZt7fk2WvB4nRp8sHd6gJc3yTr5vMm1", "00112233445566778899aabbccddeeff"} {
			for before := range 17 {
				offsets, lines := d.lines([]byte(strings.Repeat("z", before) + secret + "yyyyyyyy"))
				var text, left string
				for i, line := range lines {
					text += offsets[i] + line
					switch first, last := before/d.width, (before+len(secret)-1)/d.width; {
					case i == first:
						left += offsets[i] + "***\n"
					case i < first || i > last:
						left += offsets[i] + line
					}
				}
				for _, n := range []int{1, 7, 10_000} {
					if d.width-before%d.width == 1 && n < len(text) {
						continue // a line waits from two bytes on
					}
					require.Equal(t, redact.Plain(left), written(t, secret, text, n), "%s after %d:\n%s", name, before, text)
				}
			}
		}
	}
}

// TestSeparatedNumbersAreMasked: whatever stands between the numbers of bytes.
func TestSeparatedNumbersAreMasked(t *testing.T) {
	const secret = "canary-7f3a91-XyZw_q"
	for _, as := range []string{"%02x", "%02X", "%02x ", "%02X-", "%02x:", "0x%02x, ", "0x%02x,\n  ", `\x%02x`, "%%%02x", "&#x%02x;", "%02x\n"} {
		var text string
		for _, c := range []byte(secret) {
			text += fmt.Sprintf(as, c)
		}
		for _, n := range []int{1, 10_000} {
			if strings.Contains(as, "\n") && n == 1 {
				continue // a line waits from two bytes on
			}
			got := written(t, secret, "it is ("+text+") so\n", n)
			require.Regexp(t, `^it is \(\W*(0?x)?\*\*\*(\W*\) so)?\n$`, got, as)
		}
	}
}
