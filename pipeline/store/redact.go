package store

import (
	"os"
	"regexp"
	"strings"

	"github.com/slipway-sh/slipway/pipeline/redact"
)

var userInfo = regexp.MustCompile(`://[^/\s@"']+@`)

// SecretVariables returns the environment variables from which the SDKs read secrets.
func SecretVariables() []string {
	return []string{
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN",
		"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING", "AZURE_CLIENT_SECRET",
	}
}

// clean removes credentials from the text of an error.
func clean(text string) string {
	for _, name := range SecretVariables() {
		if v := os.Getenv(name); len(v) >= 4 {
			text = strings.ReplaceAll(text, v, "***")
		}
	}
	return redact.External(userInfo.ReplaceAllString(text, "://***@"))
}
