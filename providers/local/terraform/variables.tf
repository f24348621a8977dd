variable "deployment" {
  description = "Name of the deployment."
  type        = string

  validation {
    condition     = can(regex("^[a-z]([a-z0-9-]*[a-z0-9])?$", var.deployment))
    error_message = "The name is lower-case letters, digits and hyphens, starting with a letter."
  }
}

variable "api_endpoint" {
  description = "URL of the Kubernetes API as the steps reach it."
  type        = string

  validation {
    condition     = startswith(var.api_endpoint, "https://")
    error_message = "The API is reached over https."
  }
}

variable "storage_class" {
  description = "Name of the default StorageClass."
  type        = string
}
