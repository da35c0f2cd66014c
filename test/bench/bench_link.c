/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the link gives to two processes without a protocol; bench.py compares with it.
 *
 *   bench_link EAL... -- ROLE MILLISECONDS ARGUMENTS
 *
 * raw: "raw-rx BYTES" counts what "raw-tx BYTES" sends, "raw-ping BYTES" times what
 * "raw-pong BYTES" returns; frames of BYTES. worked: "rx", "tx", "both" (with
 * "both-peer"), "ping", "pong", each with MESSAGE_BYTES BUFFERS MTU, "pong" also with
 * "ack" or "echo".
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_eal.h>

#include "link.h"

#define ETH_BYTES 14

static const struct {
	const char *name;
	int (*run)(struct link *l);
	int nb_args;
	bool is_measuring;
} roles[] = {
	{"raw-tx", raw_tx, 1, false},
	{"raw-rx", raw_rx, 1, true},
	{"raw-ping", raw_ping, 1, true},
	{"raw-pong", raw_pong, 1, false},
	{"tx", worked_tx, 3, false},
	{"rx", worked_rx, 3, true},
	{"both", worked_both, 3, true},
	{"both-peer", worked_both_peer, 3, false},
	{"ping", worked_ping, 3, true},
	{"pong", worked_pong, 4, false},
};

static int
run(unsigned int role, char **argv)
{
	struct link l = {.argv = argv + 2};
	/* frames of the raw link, or what the MTU allows */
	uint32_t frame = (uint32_t)atoi(argv[roles[role].nb_args == 1 ? 2 : 4]) + ETH_BYTES;
	int ret;

	if (link_open(&l, frame) != 0)
		return -1;
	puts("ready");
	fflush(stdout);
	l.duration = link_ticks(&l, (uint64_t)atoi(argv[1]));
	ret = link_wait(&l, RTE_ETH_LINK_UP) ? roles[role].run(&l) : -1;
	if (ret == 0 && roles[role].is_measuring)
		link_wait(&l, RTE_ETH_LINK_DOWN);
	link_close();
	return ret;
}

int
main(int argc, char **argv)
{
	int nb_eal = rte_eal_init(argc, argv), ret;
	unsigned int i;

	argv += nb_eal + 1;
	argc -= nb_eal + 1;
	for (i = 0; nb_eal >= 0 && argc >= 2 && i < RTE_DIM(roles); i++)
		if (strcmp(argv[0], roles[i].name) == 0 && argc == 2 + roles[i].nb_args)
			break;
	if (nb_eal < 0 || argc < 2 || i == RTE_DIM(roles)) {
		fprintf(stderr, "usage: bench_link EAL... -- ROLE MILLISECONDS ARGUMENTS\n");
		return 2;
	}
	alarm(60); /* whatever happens, nothing stays behind */
	ret = run(i, argv);
	/* no rte_eal_cleanup(): memif's listener stays with a thread that still looks at it */
	return ret == 0 ? 0 : 1;
}
