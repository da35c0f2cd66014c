# SPDX-License-Identifier: BSD-3-Clause
"""Reader for traces of rte_trace: a folder with a description of all events in the language of the
Common Trace Format 1.8, and a file of events per thread. Supports only what DPDK writes."""

import os
import re
import struct

from e2e import check

MAGIC = 0xc1fc1fc1
FILE = struct.Struct('<I16sI32s')   # magic, UUID of the trace, CPU, name of the thread
EVENT = struct.Struct('<6sH')       # time, event number
ALIGN = 8
CODES = {'uint8_t': 'B', 'uint16_t': 'H', 'uint32_t': 'I', 'uint64_t': 'Q', 'int8_t': 'b',
         'int16_t': 'h', 'int32_t': 'i', 'int64_t': 'q', 'size_t': 'Q', 'uintptr_t': 'Q',
         'long': 'q', 'float': 'f', 'double': 'd'}
KIND = re.compile(r'event \{\s*id = (\d+);\s*name = "([^"]+)";\s*fields := struct \{(.*?)\};\s*\};',
                  re.DOTALL)
FIELD = re.compile(r'(\w+) (\w+)(?:\[(\d+)\])?;')


def layout(fields):
    """Names of the fields, and their packed struct."""
    names, code = [], '<'
    for kind, name, count in FIELD.findall(fields):
        names.append(name)
        code += f'{count}s' if kind == 'string_bounded_t' else count + CODES[kind]
    return names, struct.Struct(code)


def value(raw):
    return raw.split(b'\0')[0].decode() if isinstance(raw, bytes) else raw


def read_file(data, uuid, kinds):
    """(time, name, {field: value}) for each event of one thread."""
    magic, of, _, _ = FILE.unpack_from(data)
    check((magic, of.hex()) == (MAGIC, uuid), f'a file of another trace: {magic:x} {of.hex()}')
    at, events = FILE.size, []
    while at < len(data):
        ticks, number = EVENT.unpack_from(data, at)
        name, names, fields = kinds[number]
        at += EVENT.size
        values = map(value, fields.unpack_from(data, at))
        events.append((int.from_bytes(ticks, 'little'), name, dict(zip(names, values))))
        at += fields.size
        at += -at % ALIGN
    return events


def read(folder):
    """All kinds of events, and all events in order of time."""
    with open(os.path.join(folder, 'metadata'), encoding='utf-8') as f:
        text = f.read()
    uuid = re.search(r'uuid = "([^"]+)"', text)[1].replace('-', '')
    kinds = {int(number): (name, *layout(fields)) for number, name, fields in KIND.findall(text)}
    events = []
    for name in sorted(os.listdir(folder)):
        if name != 'metadata':
            with open(os.path.join(folder, name), 'rb') as f:
                events += read_file(f.read(), uuid, kinds)
    return {name for name, _, _ in kinds.values()}, sorted(events, key=lambda e: e[0])
