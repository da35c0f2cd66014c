/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * A port is parked and resumed repeatedly, while two applications work over a link that loses and
 * reorders packets: nothing is lost, duplicated or out of order, and no connection ends. (SYS-2)
 */

#include "test_engine_loop.h"

#define STATE_BYTES ((size_t)1 << 30)
#define MSGS        2000
#define MSG_LEN     3000
#define IN_FLIGHT   16
#define PARK_EVERY  100 /* completions */
#define KINDS       3

static struct san_mem *state_mem;
static int state_fd;

static void
park_setup(void)
{
	const uint64_t percent = SAN_IMPAIR_ALWAYS / 100;

	test_eal_init();
	assert_int_equal(san_mem_create(0x310000000000, STATE_BYTES, &state_fd, &state_mem), 0);
	group_setup();
	close_port();
	conf.core.mem = state_mem;
	conf.core.pdl.rto_min_ns = 200 * SAN_NS_PER_US;
	conf.impair_tx = (struct san_engine_impair_conf){
		.drop = 2 * percent,
		.reorder = 10 * percent,
		.seed = 1,
	};
	open_port();
}

static void
park_teardown(void)
{
	san_engine_close(port);
	san_mem_close(state_mem);
	close(state_fd);
}

/* The port as another process finds it: with a new device. */
static void
open_device(void)
{
	close_port();
	conf.resumes = true;
	open_port();
	conf.resumes = false;
}

static int
resume(void)
{
	const char *why = "";
	int rc = san_engine_resume(port, state_mem, &why);

	e = port->engines[0];
	return rc;
}

/* ... and the applications attach again. */
static void
resume_all(void)
{
	assert_int_equal(resume(), 0);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(san_engine_app_add(e, apps[i].id, USER, apps[i].doorbells, -1), 0);
}

/* The engine is parked and resumed, here or in another process; the rest is unchanged. */
static void
park(void)
{
	static bool leaves;

	san_engine_park(port);
	leaves = !leaves;
	if (leaves)
		open_device();
	resume_all();
}

/* Pushes, sends and pulls in turn, numbered. */
static void
post_one(uint32_t i)
{
	static const uint8_t ops[KINDS] = {RTSAN_WR_PUSH, RTSAN_WR_SEND, RTSAN_WR_PULL};
	struct san_ulp_recv r = {.wr_id = i, .nb_sge = 1, .sge = {part(&apps[1], 0, LEN)}};
	struct san_ulp_wr wr = {
		.wr_id = i,
		.op = ops[i % KINDS],
		.flags = RTSAN_WR_SIGNALED,
		.nb_sge = 1,
		.length = MSG_LEN,
		.remote_addr = name_of(&apps[1]),
		.rkey = apps[1].key,
		.sge = {part(&apps[0], 0, MSG_LEN)},
	};

	if (wr.op == RTSAN_WR_SEND)
		post_recv(&apps[1], &r);
	post(&apps[0], &wr);
}

static void
check_recvs(uint32_t *next)
{
	struct san_ulp_wc wc;

	while (san_wr_cq_poll(&apps[1].cq, apps[1].cq_mem, &wc, 1) == 1) {
		assert_int_equal(wc.status, SAN_ST_OK);
		assert_int_equal(wc.wr_id, *next);
		assert_int_equal(wc.byte_len, MSG_LEN);
		*next += KINDS;
	}
}

UNIT_FIXTURE(.setup = setup, .teardown = teardown, .first = park_setup, .last = park_teardown);

UNIT_CASE(san_engine_park__in_the_middle)
{
	uint32_t posted = 0, next_recv = 1;
	const struct san_tl *tl;
	struct san_ulp_wc wc;

	for (uint32_t i = 0; i < LEN; i++)
		apps[0].mem[i] = (uint8_t)(i * 7);
	for (uint32_t done = 0; done < MSGS; done++) {
		while (posted < MSGS && posted < done + IN_FLIGHT)
			post_one(posted++);
		if (done % PARK_EVERY == PARK_EVERY / 2)
			park();
		wc = next_wc(&apps[0]);
		assert_int_equal(wc.status, SAN_ST_OK);
		assert_int_equal(wc.wr_id, done);
		check_recvs(&next_recv);
	}
	assert_true(next_recv >= MSGS);
	/* the test was effective: packets were held, and transactions were ahead of their turn */
	tl = san_core_tl(e->core);
	assert_true(tl->drops[SAN_DROP_HANDOVER] != 0);
	assert_true(tl->cam.nb_inserts != 0);
	san_tl_check(tl);
	assert_memory_equal(apps[1].mem, apps[0].mem, MSG_LEN);
}

/* Work that was posted while the port was parked is found after the resume. */
UNIT_CASE(san_engine_park__posted_meanwhile)
{
	post_one(0);
	san_engine_park(port);
	post_one(1);
	open_device();
	resume_all();
	post_one(2);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(next_wc(&apps[0]).wr_id, i);
}

/* It cannot be resumed with fewer lcores or without memory: it stays parked, and can be later. */
UNIT_CASE(san_engine_resume__what_fails)
{
	struct san_engine_image *image = *san_mem_root(state_mem);
	struct san_engine *first = image->engines[0];
	void *bad[] = {NULL, NULL, (uint8_t *)state_mem - 4096, (void *)0x4141414141414140};
	void **pointers[] = {(void **)&image->engines[0], (void **)&first->core,
			     (void **)&first->qps, (void **)&first->again};
	const char *why = "";
	void *was;

	bad[1] = (uint8_t *)state_mem + san_mem_max(state_mem) - 8; /* in it, but not used */
	post_one(0);
	san_engine_park(port);
	image->nb_engines = 2;
	assert_int_equal(san_engine_resume(port, state_mem, &why), -EINVAL);
	assert_string_equal(why, "parked with another number of lcores");
	image->nb_engines = 1;
	port->conf.core.pdl.max_conns *= 2;
	assert_int_equal(san_engine_resume(port, state_mem, &why), -EINVAL);
	assert_non_null(strstr(why, "other numbers of connections"));
	port->conf.core.pdl.max_conns /= 2;
	/* pointers out of the arena are not followed */
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		*san_mem_root(state_mem) = bad[i];
		assert_int_equal(san_engine_resume(port, state_mem, &why), -EINVAL);
		assert_string_equal(why, "nothing is parked there");
		*san_mem_root(state_mem) = image;
		for (size_t k = 0; k < sizeof(pointers) / sizeof(pointers[0]); k++) {
			was = *pointers[k];
			*pointers[k] = bad[i];
			assert_int_equal(san_engine_resume(port, state_mem, &why), -EINVAL);
			assert_non_null(strstr(why, "other numbers of connections"));
			*pointers[k] = was;
		}
	}
	/* a value that the engine refuses when it is half created */
	port->conf.impair_tx.drop = 2 * SAN_IMPAIR_ALWAYS;
	assert_int_equal(san_engine_resume(port, state_mem, &why), -EINVAL);
	port->conf.impair_tx.drop = conf.impair_tx.drop;
	resume_all();
	assert_int_equal(next_wc(&apps[0]).wr_id, 0);
}

/* A device that cannot be opened leaves the parked state as it is. */
UNIT_CASE(san_engine_open__parked)
{
	struct san_engine_conf other = conf;
	const char *why = "";

	post_one(0);
	san_engine_park(port);
	close_port();
	other.resumes = true;
	assert_int_equal(san_engine_open(&other, &port, &why), -ENODEV);
	conf.resumes = true;
	open_port();
	conf.resumes = false;
	resume_all();
	assert_int_equal(next_wc(&apps[0]).wr_id, 0);
}

/* One process may resume; if it dies before it has begun, another one may. */
UNIT_CASE(san_engine_reclaim__one_at_a_time)
{
	struct san_engine_image *image = *san_mem_root(state_mem);

	post_one(0);
	assert_int_equal(atomic_load(&image->state), SAN_IMAGE_IN_USE);
	san_engine_reclaim(state_mem);
	san_engine_park(port);
	assert_int_equal(atomic_exchange(&image->state, SAN_IMAGE_CLAIMED), SAN_IMAGE_PARKED);
	assert_int_equal(resume(), -EBUSY);
	assert_int_equal(atomic_exchange(&image->state, SAN_IMAGE_IN_USE), SAN_IMAGE_CLAIMED);
	assert_int_equal(resume(), -EOWNERDEAD);
	san_engine_reclaim(state_mem);
	assert_int_equal(resume(), -EOWNERDEAD);
	atomic_store(&image->state, SAN_IMAGE_CLAIMED);
	san_engine_reclaim(state_mem);
	resume_all();
	assert_int_equal(next_wc(&apps[0]).wr_id, 0);
}
