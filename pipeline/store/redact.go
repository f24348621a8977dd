package store

import (
	"os"
	"regexp"
	"strings"
)

var (
	// Parameters of signed requests and of connection strings.
	secretParameter = regexp.MustCompile(`(?i)\b(sig|signature|X-Amz-Signature|X-Amz-Credential|X-Amz-Security-Token|X-Goog-Signature|X-Goog-Credential|access_token|refresh_token|client_secret|secret|password|AccountKey|SharedAccessSignature)(["']?\s*[=:]\s*["']?)[^&;\s"',}]+`)
	userInfo        = regexp.MustCompile(`://[^/\s@"']+@`)
	bearer          = regexp.MustCompile(`(?i)\b(bearer|SharedKey|AWS4-HMAC-SHA256)\s+\S+`)
	accessKeyID     = regexp.MustCompile(`\b(AKIA|ASIA)[A-Z0-9]{12,}\b`)
)

// SecretVariables are those of the environment from which the SDKs take secrets.
func SecretVariables() []string {
	return []string{
		"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_TOKEN",
		"AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGEBLOB_CONNECTIONSTRING", "AZURE_CLIENT_SECRET",
	}
}

// redact takes credentials out of the text of an error.
func redact(text string) string {
	for _, name := range SecretVariables() {
		if v := os.Getenv(name); len(v) >= 4 {
			text = strings.ReplaceAll(text, v, "***")
		}
	}
	text = userInfo.ReplaceAllString(text, "://***@")
	text = secretParameter.ReplaceAllString(text, "$1$2***")
	text = bearer.ReplaceAllString(text, "$1 ***")
	return accessKeyID.ReplaceAllString(text, "***")
}
