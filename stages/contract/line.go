package contract

import "strings"

// OriginVariable names, in a step's container, the process that started it, where
// several work in one Dagger session: they all see what the engine logs.
const OriginVariable = "SLIPWAY_ORIGIN"

// Line is the line of standard error in which a container says what goes on: who says
// it, "stage/name", and the text. origin is the value of OriginVariable.
func Line(origin, id, text string) string {
	text = oneLine(text)
	if origin != "" {
		origin = "[" + origin + "]"
	}
	return "slipway" + origin + ": " + id + ": " + text + "\n"
}

// ParseLine finds such a line in one of the engine's log, and returns its origin and
// what comes after it: "stage/name: text".
func ParseLine(line string) (origin, said string, ok bool) {
	_, rest, found := strings.Cut(line, "slipway")
	for ; found; _, rest, found = strings.Cut(rest, "slipway") {
		head, said, isSaid := strings.Cut(rest, ": ")
		if !isSaid || !strings.Contains(said, "/") {
			continue
		}
		if head == "" {
			return "", said, true
		}
		inner, opens := strings.CutPrefix(head, "[")
		if origin, closes := strings.CutSuffix(inner, "]"); opens && closes && !strings.ContainsAny(origin, "[] ") {
			return origin, said, true
		}
	}
	return "", "", false
}

// oneLine joins the lines of a text: names of objects in a cluster may contain line breaks, after
// which they could pass for lines of Slipway's own.
func oneLine(text string) string { return strings.ReplaceAll(text, "\n", " ") }
