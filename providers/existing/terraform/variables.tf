variable "deployment" {
  description = "Name of the deployment."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]*[a-z0-9])?$", var.deployment))
    error_message = "The name is lower-case letters, digits and hyphens, starting with a letter."
  }
}

# What the run finds out about the cluster; not known when the deployment is removed.

variable "api_endpoint" {
  description = "URL of the Kubernetes API as the steps reach it."
  type        = string
  default     = ""
}

variable "storage_class" {
  description = "Name of the StorageClass of the volumes."
  type        = string
  default     = ""
}
