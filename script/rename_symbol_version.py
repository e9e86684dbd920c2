"""Makes a shared library ask for an older version of what it needs.

usage: rename_symbol_version.py LIBRARY NEW OLD, as in: libpng16.so.16 GLIBC_2.29 GLIBC_2.2.5

The library must need OLD of some library already, and the functions must be there in that version.
"""

import struct
import sys

from elftools.elf.elffile import ELFFile


def elf_hash(name: str) -> int:
    """The hash of a version's name that the loader compares (System V ABI)."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high
    return value & 0xFFFFFFFF


def main() -> None:
    """Renames the version in the table of needed versions."""
    path, new, old = sys.argv[1:]
    with open(path, "r+b") as file:
        elf = ELFFile(file)
        needed = elf.get_section_by_name(".gnu.version_r")
        names = elf.get_section_by_name(".dynstr").data()
        at = names.find(b"\0" + old.encode() + b"\0") + 1
        if at == 0:
            sys.exit(f"{path} does not need {old}")
        data = bytearray(needed.data())
        offset, renamed = 0, 0
        while True:  # Verneed: version, count, file, first Vernaux, next
            _, count, _, first, following = struct.unpack_from("<HHIII", data, offset)
            entry = offset + first
            for _ in range(count):  # Vernaux: hash, flags, index, name, next
                _, flags, index, name, step = struct.unpack_from("<IHHII", data, entry)
                if names[name : names.index(b"\0", name)].decode() == new:
                    struct.pack_into("<IHHII", data, entry, elf_hash(old), flags, index, at, step)
                    renamed += 1
                entry += step
            if following == 0:
                break
            offset += following
        if renamed == 0:
            sys.exit(f"{path} does not need {new}")
        file.seek(needed["sh_offset"])
        file.write(data)


main()
