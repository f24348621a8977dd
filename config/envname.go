package config

import "strings"

// EnvName returns the name of the environment variable for the field at path: its words
// in upper case with underscores between them, so that aws.vpcId is
// SLIPWAY_CONFIG_AWS_VPC_ID.
func EnvName(path string) string {
	upper := func(i int) bool { return i < len(path) && path[i] >= 'A' && path[i] <= 'Z' }
	lower := func(i int) bool { return i < len(path) && path[i] >= 'a' && path[i] <= 'z' }
	digit := func(i int) bool { return i < len(path) && path[i] >= '0' && path[i] <= '9' }
	var words []string
	word := ""
	for i := range len(path) {
		if upper(i) && i > 0 && (!upper(i-1) || lower(i+1)) {
			words, word = append(words, word), ""
		}
		if upper(i) || lower(i) || digit(i) {
			word += path[i : i+1]
		} else {
			words, word = append(words, word), ""
		}
	}
	name := "SLIPWAY_CONFIG"
	for _, word := range append(words, word) {
		if word != "" {
			name += "_" + strings.ToUpper(word)
		}
	}
	return name
}
