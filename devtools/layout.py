#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""layout.py OUT NAME HEADER...: a C string NAME that differs whenever one of the headers does.

Live restart hands structures over as they lie in memory: who was built from other headers can't
go on with them. Comments count, too; what is refused for nothing is only an upgrade without
interruption.
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
