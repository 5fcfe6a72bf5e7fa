"""A small test suite that has something to do. The demo copies it, and runs it as a command."""

from __future__ import annotations

import compileall
import itertools
import json
import random
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import unittest
from pathlib import Path


class Small(unittest.TestCase):
    def test_json_comes_back_as_it_went(self) -> None:
        value = {str(number): list(range(number)) for number in range(300)}
        self.assertEqual(json.loads(json.dumps(value)), value)

    def test_sorting_half_a_million_numbers(self) -> None:
        draw = random.Random(7).random
        ordered = sorted(draw() for _ in range(500_000))
        self.assertTrue(all(one <= other for one, other in itertools.pairwise(ordered)))

    def test_primes_below_a_million(self) -> None:
        sieve = bytearray([1]) * 1_000_000
        sieve[:2] = b"\0\0"
        for number in range(2, 1_000):
            if sieve[number]:
                sieve[number * number :: number] = bytes(len(range(number * number, len(sieve), number)))
        self.assertEqual(sum(sieve), 78_498)

    def test_the_median_lies_in_the_middle(self) -> None:
        self.assertEqual(statistics.median(range(100_001)), 50_000)

    def test_a_new_interpreter_starts(self) -> None:
        said = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, check=True)
        self.assertEqual(said.stdout.strip(), b"42")

    def test_asyncio_compiles(self) -> None:
        source = Path(sysconfig.get_path("stdlib"), "asyncio")
        with tempfile.TemporaryDirectory(dir=".") as folder:
            for file in source.glob("*.py"):
                Path(folder, file.name).write_bytes(file.read_bytes())
            self.assertTrue(compileall.compile_dir(folder, quiet=1))


if __name__ == "__main__":
    unittest.main()
