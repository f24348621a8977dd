package argo

// Controller, RepoServer and Redis select Argo CD's own workloads, and their pods, by the
// label that its manifests and its chart give them, whatever they are called.
const (
	Controller = workload + "argocd-application-controller"
	RepoServer = workload + "argocd-repo-server"
	Redis      = workload + "argocd-redis"

	workload = "app.kubernetes.io/name="
)
