/* SPDX-License-Identifier: BSD-3-Clause */

#include "test_rtsan.h"

TEST(rtsan_listen__arguments)
{
	struct rtsan_listener *listener;

	assert_error(rtsan_listen(ctx, 1, 0, 0, &listener), -EINVAL, "backlog");
	assert_error(rtsan_listen(ctx, 1, 0, 1, NULL), -EINVAL, "listen");
	fake->conn_rc = -EADDRINUSE;
	assert_error(rtsan_listen(ctx, 1, 0, 1, &listener), -EADDRINUSE, "in use");
	fake->conn_rc = 0;
	assert_int_equal(rtsan_listen(ctx, 77, 0, 1, &listener), 0);
	assert_int_equal(fake->nb_listeners, 1);
	rtsan_listener_destroy(listener);
	assert_int_equal(fake->nb_listeners, 0);
	assert_int_equal(fake->last.conn.service, 77);
	rtsan_listener_destroy(NULL);
}

TEST(rtsan_connect__arguments)
{
	struct rtsan_conn_param param = {.order = RTSAN_ENDING + 1};
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);

	assert_error(rtsan_connect(qp, "10.0.0.1", 1, &param), -EINVAL, "order 4");
	param.order = RTSAN_UNORDERED;
	param.private_len = RTSAN_PRIVATE_MAX + 1;
	assert_error(rtsan_connect(qp, "10.0.0.1", 1, &param), -EINVAL, "65 bytes");
	param.private_len = 1;
	assert_error(rtsan_connect(qp, "10.0.0.1", 1, &param), -EINVAL, "no private_data");
	param.private_data = "x";
	assert_error(rtsan_connect(qp, NULL, 1, &param), -EINVAL, "no address");
	assert_int_equal(rtsan_connect(qp, "10.0.0.1", 9, &param), 0);
	assert_string_equal(fake->last.conn.peer, "10.0.0.1");
	assert_int_equal(fake->last.conn.uid, geteuid());
	assert_int_equal(fake->last.conn.order, RTSAN_UNORDERED);
	fake->conn_rc = -EISCONN;
	assert_error(rtsan_connect(qp, "10.0.0.1", 9, &param), -EISCONN, "connect");
	assert_error(rtsan_disconnect(qp), -EISCONN, "disconnect");
}

TEST(rtsan_accept__arguments)
{
	struct rtsan_conn_param param = {.order = 9};
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);

	assert_error(rtsan_accept(ctx, 1, qp, &param), -EINVAL, "order 9");
	assert_error(rtsan_accept(ctx, 1, NULL, NULL), -EINVAL, "another context");
	assert_int_equal(rtsan_accept(ctx, 1, qp, NULL), 0);
	assert_error(rtsan_reject(ctx, 1, NULL, 5), -EINVAL, "reject");
	assert_error(rtsan_reject(ctx, 1, "x", RTSAN_PRIVATE_MAX + 1), -EINVAL, "reject");
	assert_int_equal(rtsan_reject(ctx, 1, NULL, 0), 0);
	fake->conn_rc = -ENOENT;
	assert_error(rtsan_reject(ctx, 1, "x", 1), -ENOENT, "reject");
}

TEST(rtsan_event_poll__puts_objects_in)
{
	struct rtsan_listener *listener;
	struct rtsan_event ev;
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);

	assert_int_equal(rtsan_listen(ctx, 1, 0, 1, &listener), 0);
	assert_int_equal(rtsan_event_poll(ctx, &ev), 0);
	assert_int_equal(fake->nb_progress, 1);
	fake->ev[0].type = RTSAN_EV_CONNECT_REQUEST;
	fake->ev[0].request = 5;
	fake->ev[0].listener = fake->cookie;
	fake->ev[0].qp = UINT32_MAX;
	fake->ev[0].uid = 1000;
	fake->ev[0].user = RTSAN_USER_PROVED;
	fake->ev[0].own_user = 1;
	fake->ev[1] = (struct shmq_event){.type = RTSAN_EV_ESTABLISHED, .qp = qp->qpn};
	fake->nb_ev = 2;
	assert_int_equal(rtsan_event_poll(ctx, &ev), 1);
	assert_ptr_equal(ev.listener, listener);
	assert_null(ev.qp);
	assert_int_equal(ev.request, 5);
	assert_int_equal(ev.uid, 1000);
	assert_true(ev.user == RTSAN_USER_PROVED && ev.own_user);
	assert_int_equal(rtsan_event_poll(ctx, &ev), 1);
	assert_ptr_equal(ev.qp, qp);
	assert_int_equal(ev.uid, RTSAN_UID_NONE); /* the provider does not know */
	assert_true(ev.user == RTSAN_USER_NONE && !ev.own_user);
}

/* Events of objects that were destroyed are not reported. */
TEST(rtsan_event_poll__objects_gone)
{
	struct rtsan_event ev;
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);

	fake->ev[0] = (struct shmq_event){.type = RTSAN_EV_CONNECT_REQUEST, .listener = 99};
	fake->ev[1] = (struct shmq_event){.type = RTSAN_EV_DISCONNECTED, .qp = 7};
	fake->ev[2] = (struct shmq_event){.type = RTSAN_EV_DISCONNECTED, .qp = UINT32_MAX};
	fake->ev[3] = (struct shmq_event){.type = RTSAN_EV_REJECTED, .qp = qp->qpn};
	fake->nb_ev = 4;
	assert_int_equal(rtsan_event_poll(ctx, &ev), 1);
	assert_int_equal(ev.type, RTSAN_EV_REJECTED);
	assert_int_equal(rtsan_event_poll(ctx, &ev), 0);
	fake->progress_rc = -EIO;
	assert_error(rtsan_event_poll(ctx, &ev), -EIO, "port");
}

/* One connection at a time; the end of each is reported before the next one begins. */
TEST(rtsan_connect__after_the_end_was_told)
{
	struct rtsan_event ev;
	struct rtsan_qp *qp = test_rtsan_qp(8, NULL);

	assert_int_equal(rtsan_connect(qp, "10.0.0.2", 1, NULL), 0);
	assert_error(rtsan_connect(qp, "10.0.0.2", 1, NULL), -EISCONN, "polled");
	assert_error(rtsan_accept(ctx, 5, qp, NULL), -EISCONN, "polled");
	fake->ev[0].type = RTSAN_EV_ESTABLISHED;
	fake->ev[1].type = RTSAN_EV_DISCONNECTED;
	fake->ev[0].qp = fake->ev[1].qp = qp->qpn;
	fake->nb_ev = 2;
	assert_int_equal(rtsan_event_poll(ctx, &ev), 1);
	assert_error(rtsan_connect(qp, "10.0.0.2", 1, NULL), -EISCONN, "polled");
	assert_int_equal(rtsan_event_poll(ctx, &ev), 1);
	assert_true(atomic_load(&qp->ended));
	/* a failed call leaves it free */
	fake->conn_rc = -EADDRNOTAVAIL;
	assert_int_equal(rtsan_connect(qp, "10.0.0.2", 1, NULL), -EADDRNOTAVAIL);
	assert_true(atomic_load(&qp->ended));
	fake->conn_rc = 0;
	assert_int_equal(rtsan_connect(qp, "10.0.0.2", 1, NULL), 0);
	assert_false(atomic_load(&qp->ended));
}
