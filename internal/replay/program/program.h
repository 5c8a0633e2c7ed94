// SPDX-License-Identifier: Apache-2.0
/*
 * The file with the calls to replay, as Go package internal/replay describes it.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "system.h"

/* A word: a code, whether others wait for it, a slot (WAIT: a lane), a size (WAIT: a word count). */
enum code {
	END,
	WAIT,
	FREE,
	MALLOC,
	CALLOC,
	REALLOC,
	MEMALIGN, /* this and the following have a word for the alignment */
	POSIX_MEMALIGN,
	ALIGNED_ALLOC,
	CODES
};
enum { SIGNAL = 1 << 4, SLOT_SHIFT = 5, SIZE_SHIFT = 32 };
enum { VERSION = 1, HEADER_WORDS = 4 };
#define MAGIC 0x79616c7065727472 /* "rtreplay" */
#define SLOT_MASK ((1u << (SIZE_SHIFT - SLOT_SHIFT)) - 1)
#define WIDE UINT32_MAX /* the size is in the next word */

static const char *const names[CODES] = {
	[FREE] = "free",
	[MALLOC] = "malloc",
	[CALLOC] = "calloc",
	[REALLOC] = "realloc",
	[MEMALIGN] = "memalign",
	[POSIX_MEMALIGN] = "posix_memalign",
	[ALIGNED_ALLOC] = "aligned_alloc",
};

struct slot {
	void *block;
	size_t size;
};

/* A lane is a thread of the replay. Fields that others read have their own cache lines. */
struct lane {
	_Alignas(128) _Atomic uint32_t progress; /* words done, set for awaited words only */
	_Atomic uint32_t wanted; /* the smallest progress that a sleeper waits for */
	_Atomic uint32_t alarm; /* counts the times sleepers were woken */
	_Alignas(128) _Atomic int64_t live; /* bytes of its allocations minus those of its frees */
	int64_t most; /* of all lanes together, as sampled by this one */
	uint64_t failed;
	const uint64_t *words;
	uint64_t count;
};

static struct lane *lanes;
static struct slot *slots;
static uint64_t lane_count, slot_count;

/* check ends the program unless the words of a lane are valid. It records the codes in used. */
static void check(const struct lane *l, uint8_t *used)
{
	uint64_t i, w, code, slot;

	for (i = 0; i < l->count; i++) {
		w = l->words[i];
		code = w & (SIGNAL - 1);
		slot = w >> SLOT_SHIFT & SLOT_MASK;
		if (code == END && i == l->count - 1)
			return;
		if (code == END || code >= CODES)
			break;
		if (code == WAIT ? slot >= lane_count || w >> SIZE_SHIFT > lanes[slot].count
				 : slot >= slot_count)
			break;
		used[code] = 1;
		i += (code != WAIT && w >> SIZE_SHIFT == WIDE) + (code >= MEMALIGN);
	}
	die("bad program: word %llu of thread %td", (unsigned long long)i, l - lanes);
}

/* read_program sets up slots and lanes from a file. It records the codes in used. */
static void read_program(const char *path, uint8_t *used)
{
	uint64_t count, i, at, *words = load(path, &count);

	if (count < HEADER_WORDS || words[0] != MAGIC || words[1] != VERSION)
		die("%s is not a program for this version", path);
	lane_count = words[2];
	slot_count = words[3];
	if (lane_count == 0 || lane_count > count - HEADER_WORDS || slot_count > SLOT_MASK + 1ull)
		die("bad program: %s is too short", path);
	/* One more slot, for END, which has none. */
	slots = map(slot_count + 1, sizeof(*slots));
	lanes = map(lane_count, sizeof(*lanes));
	at = HEADER_WORDS + lane_count;
	for (i = 0; i < lane_count; i++) {
		lanes[i].wanted = UINT32_MAX;
		lanes[i].words = words + at;
		lanes[i].count = words[HEADER_WORDS + i];
		if (lanes[i].count > count - at)
			die("bad program: %s is too short", path);
		at += lanes[i].count;
	}
	for (i = 0; i < lane_count; i++)
		check(&lanes[i], used);
}

#endif /* PROGRAM_H */
