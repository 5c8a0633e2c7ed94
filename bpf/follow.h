/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Follows pointers that a call has as arguments or returns. */
#ifndef RTRACE_FOLLOW_H
#define RTRACE_FOLLOW_H

#include "call_words.h"

/* follow follows the site's chain of pointers from at; the result is 0 if it leads nowhere. */
static __always_inline __u64 follow(struct call_site *site, __u64 at)
{
	for (int i = 0; i < VALUE_STEPS && at; i++) {
		if (i >= site->steps)
			break;
		if (read_word(&at, narrow(at + site->add[i])))
			at = 0;
	}
	return at;
}

/* follow_word adds the end of the chain of pointers that starts at an argument. */
static __always_inline void follow_word(struct call_entry *e, struct call_site *site)
{
	__u32 n = site->follow - 1;
	__u64 at, beside = 0;

	asm volatile("" : "+r"(n));
	if (n >= CALL_WORDS)
		return;
	at = e->words[n];
	if (site->beside && read_word(&beside, narrow(at + site->beside)))
		beside = 0;
	e->words[WORD_NEXT] = beside;
	e->words[WORD_FOLLOWED] = follow(site, at);
}

#endif
