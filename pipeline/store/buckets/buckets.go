// Package buckets opens stores in the buckets of S3, Azure and Google Cloud.
package buckets

import "github.com/slipway-sh/slipway/pipeline/store"

// All returns the kinds of buckets that can be opened, by the scheme of their URLs.
func All() map[string]store.Opener {
	return map[string]store.Opener{"s3": S3{}, "azblob": AzureBlob{}, "gs": GoogleStorage{}}
}
