"""Finds files that use a name of the C++ standard library without its header.

A header may come through Kiln's own headers, but not through another one of the standard library:
which of those include which others differs from compiler to compiler and from release to release.
Prints "FILE: needs <HEADER> for NAME" for each, and ends with status 1 where there is any.

usage: python3 script/includes.py        (`script/check --includes` runs it)
"""

import functools
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("kiln", "cli", "tests", "python/src", "examples", "bench")
# Headers by the names that they declare. Names that nearly every header brings (std::string,
# std::move, int64_t) are left out.
NAMES = {
    "algorithm": "all_of any_of clamp copy copy_n count_if equal fill fill_n find find_if is_sorted lower_bound"
    " max max_element merge min min_element minmax_element none_of nth_element partial_sort partition"
    " remove_if reverse rotate sort stable_sort transform unique upper_bound ranges",
    "array": "array",
    "atomic": "atomic atomic_ref",
    "bit": "bit_cast bit_ceil bit_width countl_zero countr_zero has_single_bit popcount",
    "charconv": "from_chars to_chars",
    "chrono": "chrono",
    "cmath": "acos asin atan atan2 ceil copysign cos erf exp exp2 expm1 fabs floor fma fmod frexp hypot isfinite"
    " isinf isnan ldexp lgamma log log10 log1p log2 lrint nearbyint nextafter pow rint round sin sinh sqrt tan"
    " tanh trunc",
    "complex": "complex",
    "condition_variable": "condition_variable",
    "cstdio": "fclose fopen fprintf fputs fwrite printf snprintf",
    "cstdlib": "abort free getenv malloc strtod strtol strtoll",
    "cstring": "memchr memcmp memcpy memmove memset strchr strcmp strlen strncmp strrchr",
    "filesystem": "filesystem",
    "fstream": "ifstream ofstream",
    "functional": "function",
    "iterator": "back_inserter make_move_iterator",
    "limits": "numeric_limits",
    "map": "map multimap",
    "memory": "make_shared make_unique shared_ptr unique_ptr weak_ptr",
    "mutex": "call_once lock_guard mutex once_flag recursive_mutex scoped_lock unique_lock",
    "numeric": "accumulate gcd inner_product iota lcm partial_sum reduce",
    "optional": "nullopt optional",
    "random": "mt19937 mt19937_64 normal_distribution uniform_int_distribution uniform_real_distribution",
    "set": "multiset set",
    "sstream": "istringstream ostringstream stringstream",
    "thread": "thread",
    "tuple": "make_tuple tie tuple tuple_element_t tuple_size_v",
    "unordered_map": "unordered_map",
    "unordered_set": "unordered_set",
    "variant": "get_if holds_alternative variant visit",
}
USES = {header: re.compile(r"\bstd::(" + "|".join(names.split()) + r")\b") for header, names in NAMES.items()}
INCLUDE = re.compile(r'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.M)
COMMENT = re.compile(r"//.*")


@functools.cache
def text_of(path):
    return COMMENT.sub("", path.read_text())


@functools.cache
def includes_of(path):
    """Kiln's headers that a file includes, and the names of others."""
    own, other = set(), set()
    for name in INCLUDE.findall(text_of(path)):
        for place in (ROOT / name, path.parent / name, ROOT / "python/src" / name):
            if place.is_file():
                own.add(place.resolve())
                break
        else:
            other.add(name)
    return own, other


def headers_of(path):
    """All headers of the standard library that a file gets by Kiln's headers and its own lines."""
    found, seen, left = set(), set(), [path]
    while left:
        now = left.pop()
        if now in seen:
            continue
        seen.add(now)
        own, other = includes_of(now)
        found |= other
        left.extend(own)
    return found


def main():
    missing = 0
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp", ".cu"):
                continue
            headers = None
            for header, pattern in USES.items():
                found = pattern.search(text_of(path))
                if not found:
                    continue
                if headers is None:
                    headers = headers_of(path)
                if header not in headers:
                    missing += 1
                    print(f"{path.relative_to(ROOT)}: needs <{header}> for {found.group(0)}")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
