// Package oci writes container images without a daemon: a file in the OCI image layout
// (specification 1.1) with one image for each architecture. The same folders make the same
// bytes.
package oci
