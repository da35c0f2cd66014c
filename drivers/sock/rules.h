/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RULES_H
#define RULES_H
enum sock_action { SOCK_KERNEL, SOCK_CARRY, SOCK_BOTH, SOCK_DROP };
#endif
