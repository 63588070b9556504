"""For the image's HEALTHCHECK: scorer, monitor or both may run here; what listens must be healthy, and one must listen.

Ports as arguments. Standard library only: it starts every 30 s.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request


def status(port: int) -> int | None:
    """HTTP status of /healthz; None where nothing listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except ConnectionRefusedError:
        return None
    except urllib.error.URLError as error:
        return None if isinstance(error.reason, ConnectionRefusedError) else 0
    except OSError:
        return 0


def main(ports: list[int]) -> int:
    answers = {port: code for port in ports if (code := status(port)) is not None}
    print(", ".join(f"port {port}: {code or 'no answer'}" for port, code in answers.items()) or "nothing listens")
    return 0 if answers and set(answers.values()) == {200} else 1


if __name__ == "__main__":
    sys.exit(main([int(port) for port in sys.argv[1:]]))
