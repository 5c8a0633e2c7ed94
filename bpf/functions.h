/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the programs of functions.bpf.c and package tracer/functions share. Fixed widths, no
 * padding; tracer/functions compares the layout with the object.
 */
#ifndef RTRACE_FUNCTIONS_H
#define RTRACE_FUNCTIONS_H

#include "helpers.h"
#include "regs.h"

#define CALL_WORDS 16 /* registers and words of the stack in one entry, at most */
#define CALL_TEXTS 4 /* texts among these, at most */
#define TEXT_BYTES 512 /* bytes of a text with its NUL, at most */
#define VALUE_BYTES 512 /* bytes of a value that is read in a function, at most */
#define VALUE_SMALL 64
#define VALUE_STEPS 8 /* pointers that lead to a value, at most */
#define OUT_BYTES 64 /* bytes of what a call has written by its return, at most */

/* In the words of an entry, if the site requests them. */
#define WORD_MEASURED 13 /* the length of a text */
#define WORD_FOLLOWED 14 /* end of a chain of pointers */
#define WORD_NEXT 15 /* one more word, next to the first pointer */

enum call_kind {
	CALL_ENTERED = 1, /* struct call_entry */
	CALL_LEFT, /* struct call_exit */
	CALL_VALUE, /* struct call_value */
	CALL_TEXT, /* struct call_text: of an open call, which could not be read at its entry */
};

struct call_head {
	__u64 time; /* ns of CLOCK_MONOTONIC, read after the record was reserved */
	__u64 slot; /* where the return address is or would be on the stack */
	__u32 tid;
	__u16 site;
	__u8 kind;
	__u8 unread; /* a bit for each text, or the value, that could not be read */
};

struct call_entry {
	struct call_head head;
	__u64 pc; /* first instruction of the function */
	__u64 caller; /* return address, 0 if it could not be read */
	__u64 words[CALL_WORDS];
	__u8 text[CALL_TEXTS][TEXT_BYTES]; /* as many as the site has */
};

#define ENTRY_SIZE(texts) (sizeof(struct call_entry) - (CALL_TEXTS - (texts)) * TEXT_BYTES)

struct call_exit {
	struct call_head head;
	__u64 result;
	__u8 text[TEXT_BYTES]; /* if the site requests it, or OUT_BYTES */
};

#define EXIT_SIZE(bytes) (sizeof(struct call_exit) - TEXT_BYTES + (bytes))

struct call_text {
	struct call_head head;
	__u32 number; /* of the call's texts, from 0 */
	__u32 reserved;
	__u8 text[TEXT_BYTES];
};

struct call_value {
	struct call_head head;
	__u64 pc;
	__u8 data[VALUE_BYTES]; /* VALUE_SMALL if that is enough */
};

_Static_assert(ENTRY_SIZE(0) == 40 + 8 * CALL_WORDS, "call_entry");
_Static_assert(EXIT_SIZE(0) == 32, "call_exit");

/* In WORD_MEASURED: the text is not in memory, or too long to be measured. */
#define NOT_MEASURED (~0ULL)

/* In call_site.measure: characters of four bytes. */
#define MEASURE_WIDE 0x80

/* In call_site.text: not a text but as many bytes as the next word counts. */
#define TEXT_COUNTED 0x80

/* In call_site.stack: the program to call for the stack of a call, see stackers. */
enum call_stack {
	CALL_NO_STACK,
	CALL_STACK_HERE, /* the return address is where a function begins or returns */
	CALL_STACK_AFTER, /* after a return */
};

/* Numbers of registers in addition to those of regs.h. */
#define PLACE_SP 32
#define PLACE_PC 33

#define MAX_SITES 4096

struct call_site {
	__u32 back; /* bytes from the function's first instruction to the probe */
	__u32 size; /* bytes of a value; at a return: of what the call has written */
	__u8 words; /* at an entry: registers in the order of the ABI, then the stack */
	__u8 texts;
	__u8 text[CALL_TEXTS]; /* words that point to texts, from 1 */
	__u8 popped; /* at a return: the return address has been popped */
	__u8 steps; /* pointers that lead to a value; 0: it is in the register */
	__u8 from; /* register with a value, or with the first pointer to it */
	__u8 stack; /* enum call_stack */
	__u8 out; /* at an entry: word that points to what the call writes, from 1; 0: none */
	__u8 via; /* at a return: word of that with a pointer to the data, followed by its length */
	__u8 again; /* texts that cannot be read at an entry are read at the return */
	__u8 follow; /* word that the steps start from, from 1; at a return: 1 for the result */
	__u8 beside; /* at an entry: bytes from there to one more word to record; 0: none */
	__u8 measure; /* at an entry: word that points to a text to measure, from 1 */
	__s64 add[VALUE_STEPS]; /* added to the last address, for the address to read next */
};

_Static_assert(sizeof(struct call_site) == 88, "call_site");

/* Events that did not reach the tracer. */
enum call_loss {
	CALL_RING_FULL,
	CALL_LOSS_COUNT,
};

#endif
