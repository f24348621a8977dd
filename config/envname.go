package config

import (
	"regexp"
	"strings"
)

// What separates the words of a path: a capital after another character, the last capital before a
// small letter, and everything else than letters and digits.
var (
	capital     = regexp.MustCompile(`([^A-Z])([A-Z])`)
	lastCapital = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
	noWord      = regexp.MustCompile(`[^A-Za-z0-9]+`)
)

// EnvName returns the name of the environment variable for the field at path: its words
// in upper case with underscores between them, so that aws.vpcId is
// SLIPWAY_CONFIG_AWS_VPC_ID.
func EnvName(path string) string {
	words := lastCapital.ReplaceAllString(capital.ReplaceAllString(path, "${1}_${2}"), "${1}_${2}")
	return strings.TrimRight("SLIPWAY_CONFIG_"+strings.TrimLeft(strings.ToUpper(noWord.ReplaceAllString(words, "_")), "_"), "_")
}
