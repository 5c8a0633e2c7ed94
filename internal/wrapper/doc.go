// Package wrapper knows the functions that allocate on behalf of others: the C and C++
// libraries, allocators, Rust's containers, and wrappers such as xmalloc. Views leave out
// their frames where a stack begins, so that a row starts with the application's frame.
package wrapper
