// Package dotnet records the events of .NET runtimes: alone, or merged with the calls of a
// process's native allocator. It also names the code that a runtime has compiled.
package dotnet
