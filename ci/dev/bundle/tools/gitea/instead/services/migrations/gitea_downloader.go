// Package migrations has no downloader of another Gitea's issues, releases and pull requests: the
// client that it needs, gitea.dev/sdk, cannot be had as a module. A repository of another Gitea
// is imported as one of any git server is, with its commits, branches and tags.
package migrations
