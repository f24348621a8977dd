# The same six outputs, with the same attributes, for every provider.

output "cluster_name" {
  description = "The cluster's name."
  value       = { name = terraform_data.cluster.output.name }
}

output "api_endpoint" {
  description = "URL of the Kubernetes API as the steps reach it."
  value       = { url = terraform_data.cluster.output.endpoint }
}

output "storage_class" {
  description = "The StorageClass of the volumes."
  value       = { name = terraform_data.storage.output.class }
}

output "load_balancer" {
  description = "How Services of type LoadBalancer are reached: node, nodeport or cloud."
  value       = { kind = terraform_data.load_balancer.output.kind }
}

output "object_store" {
  description = "Where the platform keeps objects: none, s3, azblob or gs, and its URL."
  value       = { kind = "none", url = "" }
}

output "database" {
  description = "Where the platform keeps rows: in-cluster or managed, and host and port of the latter."
  value       = { kind = "in-cluster", host = "", port = 0 }
}
