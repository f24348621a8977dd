// Package sdk of the engine: Dagger's file of this name runs Dang, which dang_sdk.go refuses.
package sdk
