package readiness

// ReadHealth is readHealth for tests.
func ReadHealth(text string) string { return readHealth(text) }
