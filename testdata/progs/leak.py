# SPDX-License-Identifier: Apache-2.0
"""leak.py: a server with a leak, for the demonstration.

Twenty-five connections a second come and go. Each has a compressor for its
answers, as a WebSocket server has. Connections are forgotten when they close;
their compressors are not: the table of them never shrinks.

What else it allocates comes and goes: the answers, and the texts and lists that
they are made of. It prints "ready" when it serves, and runs until it is killed.
"""

import itertools
import json
import time
import zlib


class Server:
    def __init__(self):
        self.open = {}
        self.compressors = {}

    def connect(self, connection):
        self.open[connection] = []
        self.compressors[connection] = zlib.compressobj()

    def answer(self, connection):
        rows = [{"id": i, "name": "row %d" % i, "tags": ["a"] * 100} for i in range(100)]
        text = json.dumps(rows).encode()
        compressor = self.compressors[connection]
        self.open[connection].append(compressor.compress(text) + compressor.flush(zlib.Z_SYNC_FLUSH))

    def close(self, connection):
        del self.open[connection]  # and here it should forget the compressor


def serve(server, connection):
    server.connect(connection)
    server.answer(connection)
    server.close(connection)


server = Server()
for connection in itertools.count():
    serve(server, connection)
    if connection == 0:
        print("ready", flush=True)
    time.sleep(0.04)
