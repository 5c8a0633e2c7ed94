// Package selection finds the processes that a user means: by id, command
// name, cgroup or user.
package selection
