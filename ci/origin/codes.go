package origin

// The codes of refusals. Those that the program has too are documented there.
const (
	codeNoBundle = "BUN-001"
	codeIndex    = "BUN-002"
	codeContent  = "BUN-003"
	codePlatform = "BUN-004"
	codeNoImages = "BUN-006"
	codeTrust    = "BUN-007"
	codeLockFile = "LCK-003"
	codeNoImage  = "REG-007"
	codePull     = "REG-009"
	codeNowhere  = "REG-010"
)
