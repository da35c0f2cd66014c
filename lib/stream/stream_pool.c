/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Message buffers: one pool to receive and one to send, both allocated with the session (AFC-27).
 *
 * nb_recv receive buffers are always posted: a received message is processed at once, and another
 * buffer is posted in its place. Data that the application has not read stays in its buffer, which
 * is passed on instead of copied. There are nb_store buffers beyond the posted ones, and the peer
 * never has more messages unread (san_stream_credit_has_room()). So an application that does not
 * read stops its own stream, but never a control message.
 */

#include <errno.h>

#include "stream_priv.h"

static void
pool_list_free(struct stream_pool *p, uint16_t at)
{
	p->bufs[at].state = STREAM_BUF_FREE;
	p->bufs[at].next = p->free;
	p->free = at;
	p->nb_free++;
}

int
san_stream_pool_init(struct san_stream *s, struct stream_pool *p, uint16_t nb, uint32_t size)
{
	uint16_t i;

	p->mem = s->ops->alloc(s->arg, (size_t)nb * size);
	if (p->mem == NULL)
		return -ENOMEM;
	p->nb = nb;
	p->size = size;
	p->free = STREAM_NONE;
	for (i = nb; i-- > 0;) {
		p->bufs[i] = (struct stream_buf){.data = p->mem + (size_t)i * size, .size = size};
		pool_list_free(p, i);
	}
	return 0;
}

void
san_stream_pool_fini(struct san_stream *s, struct stream_pool *p)
{
	if (p->old_mem != NULL)
		s->ops->free(s->arg, p->old_mem, p->old_bytes);
	if (p->mem != NULL)
		s->ops->free(s->arg, p->mem, (size_t)p->nb * p->size);
}

/* Move a free buffer to its place in the new memory. */
static void
pool_move_buf(struct san_stream *s, struct stream_pool *p, uint16_t at)
{
	struct stream_buf *b = &p->bufs[at];

	if (b->size == p->size)
		return;
	b->size = p->size;
	b->data = p->mem + (size_t)at * p->size;
	if (--p->nb_old > 0)
		return;
	s->ops->free(s->arg, p->old_mem, p->old_bytes);
	p->old_mem = NULL;
}

int
san_stream_pool_resize(struct san_stream *s, struct stream_pool *p, uint32_t size)
{
	uint8_t *mem;
	uint16_t i;

	if (p->old_mem != NULL)
		return -EBUSY;
	SAN_ASSERT(size != p->size);
	mem = s->ops->alloc(s->arg, (size_t)p->nb * size);
	if (mem == NULL)
		return -ENOMEM;
	p->old_mem = p->mem;
	p->old_bytes = (size_t)p->nb * p->size;
	p->nb_old = p->nb;
	p->mem = mem;
	p->size = size;
	for (i = 0; i < p->nb; i++)
		if (p->bufs[i].state == STREAM_BUF_FREE)
			pool_move_buf(s, p, i);
	return 0;
}

uint16_t
san_stream_pool_get(struct stream_pool *p)
{
	uint16_t at = p->free;

	if (at != STREAM_NONE) {
		p->free = p->bufs[at].next;
		p->nb_free--;
	}
	return at;
}

void
san_stream_pool_put(struct san_stream *s, struct stream_pool *p, uint16_t at)
{
	SAN_ASSERT(p->bufs[at].state != STREAM_BUF_FREE);
	pool_list_free(p, at);
	pool_move_buf(s, p, at);
}

void
san_stream_pool_post_recvs(struct san_stream *s)
{
	struct stream_pool *p = &s->rpool;
	struct stream_buf *b;
	uint16_t at;

	while (s->cr.nb_posted < s->conf.nb_recv && p->nb_free > 0) {
		at = san_stream_pool_get(p);
		b = &p->bufs[at];
		if (s->ops->recv(s->arg, san_stream_cookie(STREAM_REQ_RECV, 0, at), b->data,
				 b->size) != 0) {
			pool_list_free(p, at);
			return;
		}
		b->state = STREAM_BUF_POSTED;
		s->cr.nb_posted++;
		s->cr.nb_posted_ever++;
	}
}
