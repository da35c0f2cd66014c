/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Invalid frames, some ten thousand per second, sent inside the test's network namespace:
 *
 * flood IFACE COUNT SEED
 *
 * Receives packets of the transport that pass IFACE, and sends frames derived from them: with
 * random bits flipped, truncated, or repeated. It also sends frames of random bytes, with and
 * without valid IP and UDP headers.
 */

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define BURST     64
#define FRAME_MAX 1514
#define MODELS    64
#define PAUSE_NS  1000000 /* after each burst */
#define PORT      4791

struct frame {
	uint16_t len;
	uint8_t bytes[FRAME_MAX];
};

static struct frame models[MODELS];
static uint32_t nb_models;
static uint64_t state;

static uint64_t
next(void)
{
	uint64_t x = state += 0x9e3779b97f4a7c15ull;

	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
	return x ^ (x >> 31);
}

static void
randomize(uint8_t *p, uint32_t from, uint32_t to)
{
	for (; from < to; from++)
		p[from] = (uint8_t)next();
}

/* Offset behind the UDP header; 0: not a frame of the transport. */
static uint32_t
payload_at(const uint8_t *p, uint32_t len)
{
	uint32_t at = 0;

	if (len > 62 && p[12] == 0x08 && p[13] == 0x00 && p[23] == 17)
		at = 14 + (p[14] & 15) * 4u;
	else if (len > 82 && p[12] == 0x86 && p[13] == 0xdd && p[20] == 17)
		at = 54;
	return at != 0 && (p[at + 2] << 8 | p[at + 3]) == PORT ? at + 8 : 0;
}

/* Keep received packets as models; the oldest one is replaced. */
static void
listen_for_models(int fd)
{
	uint8_t p[FRAME_MAX];
	struct frame *f;
	ssize_t n;

	for (int i = 0; i < BURST; i++) {
		n = recv(fd, p, sizeof(p), MSG_DONTWAIT);
		if (n <= 0)
			return;
		if (payload_at(p, (uint32_t)n) == 0)
			continue;
		f = &models[nb_models++ % MODELS];
		f->len = (uint16_t)n;
		memcpy(f->bytes, p, (size_t)n);
	}
}

static void
flip_bits(uint8_t *p, uint32_t from, uint32_t to)
{
	uint32_t n = 1 + next() % 8, bit;

	while (n-- > 0 && to > from) {
		bit = (uint32_t)(next() % ((to - from) * 8u));
		p[from + bit / 8] ^= (uint8_t)(1u << (bit % 8));
	}
}

static uint16_t
make(struct frame *f)
{
	const struct frame *m = &models[next() % (nb_models < MODELS ? nb_models : MODELS)];
	uint32_t at = payload_at(m->bytes, m->len);

	*f = *m;
	switch (next() % 6) {
	case 0: /* bits flipped behind Ethernet */
		flip_bits(f->bytes, 14, f->len);
		break;
	case 1: /* bits flipped in the transport's headers */
		flip_bits(f->bytes, at, at + 40 < f->len ? at + 40u : f->len);
		break;
	case 2: /* truncated */
		f->len = (uint16_t)(14 + next() % (f->len - 14u));
		break;
	case 3: /* random bytes behind UDP */
		randomize(f->bytes, at, f->len);
		break;
	case 4: /* random bytes behind Ethernet */
		f->len = (uint16_t)(60 + next() % (FRAME_MAX - 60));
		randomize(f->bytes, 14, f->len);
		break;
	case 5: /* a late copy, unchanged */
		break;
	}
	return f->len;
}

static uint64_t
send_burst(int fd)
{
	static struct frame frames[BURST];
	struct mmsghdr msgs[BURST];
	struct iovec iov[BURST];
	int n;

	memset(msgs, 0, sizeof(msgs));
	for (int i = 0; i < BURST; i++) {
		iov[i].iov_base = frames[i].bytes;
		iov[i].iov_len = make(&frames[i]);
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	n = sendmmsg(fd, msgs, BURST, 0);
	return n > 0 ? (uint64_t)n : 0;
}

int
main(int argc, char **argv)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	uint64_t sent = 0, count;
	int fd;

	if (argc != 4) {
		fprintf(stderr, "usage: flood IFACE COUNT SEED\n");
		return 2;
	}
	to.sll_ifindex = (int)if_nametoindex(argv[1]);
	count = strtoull(argv[2], NULL, 0);
	state = strtoull(argv[3], NULL, 0);
	fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
		perror("flood");
		return 1;
	}
	while (sent < count) {
		/* A packet socket does not receive what it has sent itself. */
		listen_for_models(fd);
		if (nb_models > 0)
			sent += send_burst(fd);
		nanosleep(&pause, NULL);
	}
	return 0;
}
