/* A library with two versions of a function. */
int first(void) { return 1; }
int second(void) { return 2; }
int lone(void) { return 3; }
__asm__(".symver first,cond@V1\n.symver second,cond@@V2");
