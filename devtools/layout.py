#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""layout.py OUT NAME HEADER...: write a C string NAME that changes with any of the headers.

Live restart passes structures as they lie in memory, so a daemon built from other headers can't use
them. Changed comments count as well, which at worst refuses an upgrade without interruption.
"""

import hashlib
import os
import sys


def main(out, name, *headers):
    digest = hashlib.sha256()
    for header in sorted(headers, key=os.path.basename):
        with open(header, 'rb') as f:
            digest.update(os.path.basename(header).encode() + b'\0' + f.read())
    with open(out, 'w', encoding='ascii') as f:
        f.write(f'static const char {name}[] = "{digest.hexdigest()[:16]}";\n')


main(*sys.argv[1:])
