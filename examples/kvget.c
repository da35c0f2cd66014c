/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A key-value store that clients read without the server's CPU: the server publishes a hash table,
 * and a client pulls the bucket where a key should be.
 *
 *	kvget server SPEC
 *	kvget client SPEC PEER [KEYS]
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ex.h"

#define NB_KEYS    10000
#define NB_BUCKETS 16384 /* power of two */

/* A bucket. The checksum detects one that is being written. */
struct bucket {
	uint64_t key; /* 0: empty */
	uint8_t value[48];
	uint64_t checksum;
};

/* Location of the table, sent to the client. */
struct table {
	uint64_t addr;
	uint32_t rkey;
	uint32_t nb_buckets;
};

static uint64_t
hash(uint64_t key)
{
	return ex_checksum(&key, sizeof(key)) & (NB_BUCKETS - 1);
}

/* The value of a key, so that the client can verify it. */
static void
value_of(uint64_t key, uint8_t value[48])
{
	memset(value, 0, 48);
	snprintf((char *)value, 48, "the value of key %llu", (unsigned long long)key);
}

static void
put(struct bucket *table, uint64_t key)
{
	uint64_t at = hash(key);

	while (table[at].key != 0)
		at = (at + 1) & (NB_BUCKETS - 1);
	table[at].key = key;
	value_of(key, table[at].value);
	table[at].checksum = ex_checksum(&table[at], offsetof(struct bucket, checksum));
}

static void
server(struct ex *ex)
{
	struct rtsan_mr *mr = ex_alloc(ex, NB_BUCKETS * sizeof(struct bucket), RTSAN_REMOTE_PULL);
	const struct table table = {
		.addr = (uintptr_t)rtsan_mr_addr(mr),
		.rkey = rtsan_mr_rkey(mr),
		.nb_buckets = NB_BUCKETS,
	};
	uint64_t key;

	for (key = 1; key <= NB_KEYS; key++)
		put(rtsan_mr_addr(mr), key);
	ex_listen(ex);
	ex_accept(ex, &table, sizeof(table));
	ex_wait_disconnect(ex);
	printf("kvget: served %d keys\n", NB_KEYS);
}

/* Pull buckets until one has the key or is empty. Returns the number of pulls. */
static int
get(struct ex *ex, struct rtsan_mr *mr, const struct table *table, uint64_t key,
    struct bucket **found)
{
	struct rtsan_sge sge = ex_sge(mr, 0, sizeof(struct bucket));
	struct rtsan_send_wr wr = {
		.opcode = RTSAN_WR_PULL,
		.flags = RTSAN_WR_SIGNALED,
		.rkey = table->rkey,
		.sge = &sge,
		.nb_sge = 1,
	};
	struct bucket *b = rtsan_mr_addr(mr);
	struct rtsan_wc wc;
	uint64_t at = hash(key);
	int pulls = 0;

	do {
		wr.remote_addr = table->addr + at * sizeof(*b);
		ex_post_send(ex, &wr);
		ex_wait(ex, &wc);
		at = (at + 1) & (table->nb_buckets - 1);
		pulls++;
	} while (b->key != key && b->key != 0);
	*found = b->key == key ? b : NULL;
	return pulls;
}

static void
client(struct ex *ex, const char *peer, uint64_t nb_keys)
{
	struct rtsan_mr *mr = ex_alloc(ex, sizeof(struct bucket), 0);
	struct table table;
	struct bucket *b;
	uint8_t value[48];
	uint64_t key, pulls = 0;

	ex_connect(ex, peer, NULL, 0);
	memcpy(&table, ex->ev.private_data, sizeof(table));
	for (key = 1; key <= nb_keys; key++) {
		pulls += (uint64_t)get(ex, mr, &table, key, &b);
		value_of(key, value);
		if (b == NULL || memcmp(b->value, value, sizeof(value)) != 0 ||
		    b->checksum != ex_checksum(b, offsetof(struct bucket, checksum)))
			ex_die(ex, "key %llu: missing or wrong", (unsigned long long)key);
	}
	get(ex, mr, &table, NB_KEYS + 1, &b);
	if (b != NULL)
		ex_die(ex, "a key that nobody put was found");
	printf("kvget: %llu keys found and right, %llu pulls\n", (unsigned long long)nb_keys,
	       (unsigned long long)pulls);
	ex_disconnect(ex);
}

int
main(int argc, char **argv)
{
	struct ex ex = {.name = "kvget"};
	uint64_t nb_keys = argc == 5 ? strtoull(argv[4], NULL, 0) : NB_KEYS;

	if (argc == 3 && strcmp(argv[1], "server") == 0) {
		ex_open(&ex, "kvget", argv[2]);
		server(&ex);
	} else if ((argc == 4 || argc == 5) && strcmp(argv[1], "client") == 0 &&
		   nb_keys <= NB_KEYS) {
		ex_open(&ex, "kvget", argv[2]);
		client(&ex, argv[3], nb_keys);
	} else {
		fprintf(stderr, "usage: kvget server SPEC | client SPEC PEER [KEYS <= %d]\n",
			NB_KEYS);
		return 2;
	}
	ex_close(&ex);
	return 0;
}
