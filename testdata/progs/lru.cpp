// SPDX-License-Identifier: Apache-2.0
/*
 * lru: a C++ program with a cache that replaces what was used least recently, and a leak.
 *
 * At first it fills the cache of 256 values of 16,000 bytes, and opens 4,000 sessions that
 * nothing closes. After the gate, every millisecond, it looks up 16 values, replaces 16 others,
 * and opens one session more, until a byte or the end of file follows the gate's byte. Then it
 * waits at the gate once more. Output: "sessions N", the number of sessions, and "bytes N", the
 * size of one.
 */
#include "prog.h"
#include <list>
#include <poll.h>
#include <string>
#include <unordered_map>

class cache
{
public:
	explicit cache(size_t most) : most(most) {}

	NOINLINE void put(unsigned long key)
	{
		if (index.size() == most) {
			index.erase(order.back().first);
			order.pop_back();
		}
		order.emplace_front(key, std::string(16000, 'v'));
		index[key] = order.begin();
	}

	/* get returns the value of a key, which is the newest from now on, or null. */
	const std::string *get(unsigned long key)
	{
		auto found = index.find(key);

		if (found == index.end())
			return nullptr;
		order.splice(order.begin(), order, found->second);
		return &found->second->second;
	}

private:
	using entries = std::list<std::pair<unsigned long, std::string>>;
	size_t most;
	entries order;
	std::unordered_map<unsigned long, entries::iterator> index;
};

struct session {
	unsigned long number;
	char buffer[3992];
};

static session *volatile last; /* so that the compiler does not omit the leak */

static NOINLINE void open_session(unsigned long number)
{
	session *s = new session;

	memset(s, 1, sizeof(*s));
	s->number = number;
	last = s;
}

int main()
{
	enum { VALUES = 256, SESSIONS = 4000, REPLACED = 16 };
	struct pollfd go = { .fd = GATE_GO, .events = POLLIN, .revents = 0 };
	cache values(VALUES);
	unsigned long keys = 0, sessions = 0, i;

	while (keys < VALUES)
		values.put(keys++);
	while (sessions < SESSIONS)
		open_session(sessions++);
	gate();
	while (poll(&go, 1, 1) <= 0) {
		for (i = 0; i < REPLACED; i++) {
			if (!values.get(keys - 1 - i * 7))
				die("a value is gone too early");
			values.put(keys++);
		}
		open_session(sessions++);
	}
	(void)read_byte(GATE_GO);
	gate();
	out("sessions %lu\nbytes %zu\n", sessions, sizeof(session));
	out_flush();
	_exit(0);
}
