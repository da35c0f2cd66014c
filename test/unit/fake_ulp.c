/* SPDX-License-Identifier: BSD-3-Clause */

/* A fake ULP for tests of tl: it returns what the test sets, and records its calls. (ARCH-2) */

#include "tl_pair.h"

struct tl_pair pair;

bool
san_tl_ulp_reserve(void *ulp, uint16_t slot)
{
	struct tl_fake *f = ulp;

	if (f->nb_recvs <= f->nb_set_aside)
		return false;
	f->nb_set_aside++;
	return true;
}

void
san_tl_ulp_unreserve(void *ulp, uint16_t slot)
{
	struct tl_fake *f = ulp;

	f->nb_set_aside--;
}

uint8_t
san_tl_ulp_push_check(void *ulp, struct san_tl_rxn *r)
{
	struct tl_fake *f = ulp;

	return f->push_check;
}

uint8_t
san_tl_ulp_push_req(void *ulp, struct san_tl_rxn *r)
{
	struct tl_fake *f = ulp;

	f->nb_push_req++;
	if (r->reserved) {
		f->nb_set_aside--;
		r->reserved = false;
	}
	if (f->push_req != SAN_ST_OK)
		return f->push_req;
	if (f->bad != SAN_ST_OK && r->rsn == f->bad_rsn)
		return f->bad;
	if (r->kind == SAN_KIND_PUSH)
		return SAN_ST_OK;
	if (f->nb_recvs == 0)
		return SAN_ST_RNR;
	f->nb_recvs--;
	return SAN_ST_OK;
}

/* A send in a packed packet has no address: its place if cookies count from 0. */
static uint64_t
pair_send_addr(const struct san_tl_rxn *r)
{
	return 4096ul * (r->rsn - pair.h[0].tl->conns[pair.slot[0]].peer.first_rsn_tx);
}

uint8_t
san_tl_ulp_push_place(void *ulp, struct san_tl_rxn *r, uint32_t offset, struct rte_mbuf *m,
		      uint16_t off, uint16_t len)
{
	struct tl_fake *f = ulp;
	uint64_t addr = r->packed && r->kind == SAN_KIND_SEND ? pair_send_addr(r) : r->addr;
	uint8_t *dst = &f->mem[addr + offset];
	const void *src = rte_pktmbuf_read(m, off, len, dst);

	f->nb_place++;
	if (f->push_place != SAN_ST_OK)
		return f->push_place;
	SAN_VERIFY(src != NULL);
	if (src != dst)
		memcpy(dst, src, len);
	return SAN_ST_OK;
}

uint8_t
san_tl_ulp_push_done(void *ulp, struct san_tl_rxn *r)
{
	struct tl_fake *f = ulp;

	if (f->push_done != SAN_ST_OK)
		return f->push_done;
	f->done[f->nb_done++ % PAIR_LOG] = r->rsn;
	f->imm = r->imm;
	return SAN_ST_OK;
}

bool
san_tl_ulp_push_packed(void *ulp, uint16_t slot, const struct rte_mbuf *m,
		       const struct san_wire_pkt *p)
{
	return false; /* it is asked for each message */
}

void
san_tl_ulp_push_abort(void *ulp, struct san_tl_rxn *r)
{
	struct tl_fake *f = ulp;

	f->nb_abort++;
	f->nb_recvs += r->kind != SAN_KIND_PUSH;
}

uint8_t
san_tl_ulp_pull_req(void *ulp, struct san_tl_rxn *r)
{
	struct tl_fake *f = ulp;

	f->nb_pull_req++;
	if (f->pull_req == SAN_ST_OK)
		f->done[f->nb_done++ % PAIR_LOG] = r->rsn;
	return f->pull_req;
}

uint8_t
san_tl_ulp_pull_read(void *ulp, struct san_tl_rxn *r, uint32_t offset, void *dst, uint16_t len)
{
	struct tl_fake *f = ulp;

	memcpy(dst, &f->mem[r->addr + offset], len);
	return f->pull_read;
}

uint8_t
san_tl_ulp_atomic(void *ulp, struct san_tl_rxn *r)
{
	struct tl_fake *f = ulp;

	f->nb_atomic++;
	f->done[f->nb_done++ % PAIR_LOG] = r->rsn;
	r->result = f->counter;
	if (r->op == SAN_ATOMIC_FETCH_ADD)
		f->counter += r->operand;
	else if (f->counter == r->operand)
		f->counter = r->swap;
	return SAN_ST_OK;
}

void
san_tl_ulp_push_fill(void *ulp, const struct san_tl_txn *t, uint32_t offset, void *dst,
		     uint16_t len)
{
	uint8_t *p = dst;

	for (uint32_t i = 0; i < len; i++)
		p[i] = pair_byte(t->req.cookie, offset + i);
}

void
san_tl_ulp_atomic_fill(void *ulp, const struct san_tl_txn *t, rte_be64_t args[2])
{
	const struct tl_fake *f = ulp;

	args[0] = rte_cpu_to_be_64(f->addend);
	args[1] = 0;
}

uint8_t
san_tl_ulp_pull_place(void *ulp, const struct san_tl_txn *t, uint32_t offset, struct rte_mbuf *m,
		      uint16_t off, uint16_t len)
{
	struct tl_fake *f = ulp;
	rte_be64_t v;

	if (t->req.type == SAN_TL_ATOMIC) {
		memcpy(&v, rte_pktmbuf_mtod_offset(m, char *, off), sizeof(v));
		f->atomic_result = rte_be_to_cpu_64(v);
	}
	f->nb_pull_bytes += len;
	return SAN_ST_OK;
}

void
san_tl_ulp_cmpl(void *ulp, struct san_tl_txn *const t[], uint32_t n, uint8_t status)
{
	struct tl_fake *f = ulp;

	for (uint32_t i = 0; i < n; i++) {
		f->cookie[f->nb_cmpl % PAIR_LOG] = t[i]->req.cookie;
		f->status[f->nb_cmpl++ % PAIR_LOG] = status;
	}
}

void
san_tl_ulp_room(void *ulp, uint16_t slot)
{
	struct tl_fake *f = ulp;

	f->nb_room++;
	f->room_slot = slot;
}
