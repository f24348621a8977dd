// Package docs holds the pages for people, of which the program shows one.
package docs

import _ "embed"

// Errors is errors.md: a section "### CODE" for each fault code. Command errors
// beside it writes the page.
//
//go:embed errors.md
var Errors string
