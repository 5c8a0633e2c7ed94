// SPDX-License-Identifier: Apache-2.0

// Command cgo is a Go program that contains C, for tests of the tracer. N goroutines call into C,
// which allocates and calls back into Go, where stacks grow and are moved and goroutines change
// their threads. At the end it prints the sums, which are always the same, and exits with code 3.
package main

/*
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern uint64_t goBack(uint64_t, uint64_t);

// A block that lives while Go runs again, further down the stack of this thread.
static uint64_t round_trip(uint64_t n, uint64_t depth)
{
	unsigned char *p = malloc(n % 3000 + 1), *q = calloc(3, 100);
	uint64_t sum;

	memset(p, 1, n % 3000 + 1);
	q = realloc(q, 5000);
	sum = depth ? goBack(n, depth) : n;
	sum += p[n % 3000];
	free(q);
	free(p);
	return sum;
}

// The gate of the test programs. Without its pipes there is nothing to wait for.
static void gate(void)
{
	char c;

	if (write(3, "ready\n", 6) == 6 && read(4, &c, 1) != 1)
		_exit(98);
}
*/
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
)

//export goBack
func goBack(n, depth C.uint64_t) C.uint64_t {
	runtime.Gosched()
	return grow(n, depth, 20)
}

// grow needs more stack than there is, so that the stack is moved, and calls into C again.
func grow(n, depth C.uint64_t, frames int) C.uint64_t {
	var large [512]byte
	large[frames] = byte(frames)
	if frames > 0 {
		return grow(n, depth, frames-1) + C.uint64_t(large[frames]) - C.uint64_t(frames)
	}
	return C.round_trip(n, depth-1)
}

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	C.gate()
	sums := make([]C.uint64_t, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			for round := range C.uint64_t(50) {
				sums[i] += C.round_trip(round*C.uint64_t(i+1), round%4)
				if round%10 == 0 {
					runtime.GC() // signals threads, including those in C
				}
			}
		})
	}
	all.Wait()
	total := C.uint64_t(0)
	for _, s := range sums {
		total += s
	}
	fmt.Println("cgo", n, total)
	os.Exit(3)
}
