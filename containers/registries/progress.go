package registries

import "time"

// Progress is how far an image has come from or to a registry.
type Progress struct {
	Image       string // its reference, or its short name
	N, Of       int    // the image's number, from 1
	Done, Total int64  // bytes that are there
	Finished    bool
	There       bool // the whole image was there before
	Took        time.Duration
}
