"""Print a TCP port that is free on 127.0.0.1 and below the range from which the system picks its own.

A port out of that range could be taken by any outgoing connection between this moment and the server's start.
"""

import random
import socket


def main() -> None:
    while True:
        port = random.randrange(20_000, 32_768)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        print(port)
        return


if __name__ == "__main__":
    main()
