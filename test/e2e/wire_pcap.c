/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Writes one packet of each type and variant, over IPv4 and IPv6, as lib/wire builds them: for
 * tshark and scapy to check, and as seeds for the fuzzer. Does the same for messages of stream
 * sessions (AFC-3): on a connection, in every way in which a send is transmitted.
 *
 * usage: wire_pcap FILE.pcap            all packets; prints "frame name version" per packet
 *        wire_pcap --streams FILE.pcap  session messages
 *        wire_pcap --corpus FOLDER      one file per packet
 *        wire_pcap --messages FOLDER    one file per session message
 */

#include "stream_sample.h"
#include "unit/test_eal.h"
#include "wire_sample.h"

#define PCAP_MAGIC    0xa1b2c3d4
#define LINK_ETHERNET 1

#define FEAT_STREAM 0x2 /* of a connection whose sends are session messages */
#define LONG_BYTES  100 /* payload of a message that takes two packets */

struct pcap_file {
	uint32_t magic;
	uint16_t major, minor;
	uint32_t zone, sigfigs, snaplen, link;
};

struct pcap_packet {
	uint32_t sec, usec, caplen, len;
};

static int
write_file(const char *path, const void *data, size_t len)
{
	FILE *f = fopen(path, "wb");
	size_t n;

	if (f == NULL) {
		perror(path);
		return -1;
	}
	n = fwrite(data, 1, len, f);
	return fclose(f) != 0 || n != len ? -1 : 0;
}

static int
write_pcap(FILE *f, const char *name, bool v6, const struct rte_mbuf *m)
{
	static uint32_t frame;
	uint32_t len = rte_pktmbuf_data_len(m);
	struct pcap_packet hdr = {.sec = ++frame, .caplen = len, .len = len};

	printf("%u %s %d\n", frame, name, v6 ? 6 : 4);
	if (fwrite(&hdr, sizeof(hdr), 1, f) != 1 ||
	    fwrite(rte_pktmbuf_mtod(m, void *), len, 1, f) != 1)
		return -1;
	return 0;
}

static int
write_all(struct rte_mempool *pool, FILE *pcap, const char *folder)
{
	struct rte_mbuf *m;
	char path[4096];
	int v6, rc = 0;

	for (unsigned int i = 0; i < RTE_DIM(wire_samples) * 2 && rc == 0; i++) {
		v6 = i & 1;
		m = wire_sample_build(pool, &wire_samples[i / 2], v6);
		if (m == NULL)
			return -1;
		snprintf(path, sizeof(path), "%s/%s_v%d.bin", folder, wire_samples[i / 2].name,
			 v6 ? 6 : 4);
		if (pcap != NULL)
			rc = write_pcap(pcap, wire_samples[i / 2].name, v6, m);
		else
			rc = write_file(path, rte_pktmbuf_mtod(m, void *),
					rte_pktmbuf_data_len(m));
		rte_pktmbuf_free(m);
	}
	return rc;
}

static int
write_messages(const char *folder)
{
	uint8_t p[SAN_SM_HDR_MAX + STREAM_SAMPLE_PAYLOAD];
	char path[4096];
	int rc = 0;

	for (size_t i = 0; i < STREAM_NB_SAMPLES && rc == 0; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, stream_samples[i].name);
		rc = write_file(path, p, stream_sample_put(&stream_samples[i], p));
	}
	return rc;
}

/** Direction: from the initiator to the acceptor; or *back*. */
struct way {
	bool back;
	bool stale; /* of an earlier incarnation of the connection */
};

static int
write_data(struct rte_mempool *pool, FILE *pcap, const char *name, struct way way,
	   struct san_wire_pkt p, const void *data, uint16_t len)
{
	struct san_wire_path path = wire_sample_path(false);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	int rc;

	if (m == NULL)
		return -1;
	p.pkey = 0x8123;
	p.dcid = way.back ? 0x111213 : 0x313233;
	p.tag = (way.back ? 0x21222324 : 0x41424344) + way.stale;
	memcpy(rte_pktmbuf_append(m, len), data, len);
	san_wire_build(m, &path, &p);
	san_wire_icrc_seal(m);
	rc = write_pcap(pcap, name, false, m);
	rte_pktmbuf_free(m);
	return rc;
}

/** Every sample, each as a send in one packet. */
static int
write_sends(struct rte_mempool *pool, FILE *pcap, struct way way)
{
	struct san_wire_pkt p = {
		.op = SAN_OP_PUSH_UNSLCTD_DATA,
		.flags = SAN_F_LAST | WIRE_SAMPLE_KIND(SEND),
	};
	uint8_t data[SAN_SM_HDR_MAX + STREAM_SAMPLE_PAYLOAD];
	int rc = 0;

	for (size_t i = 0; i < STREAM_NB_SAMPLES && rc == 0; i++) {
		p.length = stream_sample_put(&stream_samples[i], data);
		rc = write_data(pool, pcap, stream_samples[i].name, way, p, data,
				(uint16_t)p.length);
	}
	return rc;
}

/** All parts and a longer payload: two packets of a granted send. */
static int
write_long(struct rte_mempool *pool, FILE *pcap)
{
	const struct stream_sample s = {"", STREAM_SAMPLE_ALL, LONG_BYTES, 1};
	struct san_wire_pkt p = {
		.op = SAN_OP_PUSH_SLCTD_DATA,
		.flags = WIRE_SAMPLE_KIND(SEND),
	};
	uint8_t data[SAN_SM_HDR_MAX + LONG_BYTES];
	uint16_t len = (uint16_t)stream_sample_put(&s, data);
	uint16_t half = len - LONG_BYTES / 2;

	if (write_data(pool, pcap, "long_first", (struct way){0}, p, data, half) != 0)
		return -1;
	p.flags |= SAN_F_LAST;
	p.offset = half;
	return write_data(pool, pcap, "long_last", (struct way){0}, p, data + half, len - half);
}

/** All samples except the long ones in one packet, with a push. */
static int
write_packed(struct rte_mempool *pool, FILE *pcap)
{
	struct san_wire_msg msg = {.kind = SAN_KIND_PUSH, .length = 8};
	struct san_wire_pkt p = {.op = SAN_OP_PUSH_PACKED, .length = 1};
	uint8_t data[2048] = {0}, one[SAN_SM_HDR_MAX + STREAM_SAMPLE_PAYLOAD];
	uint8_t *to = data;

	memset(san_wire_pack_put(to, &msg), 0x5a, msg.length);
	to += san_wire_pack_len(msg.kind, msg.length);
	msg.kind = SAN_KIND_SEND;
	for (size_t i = 0; i < STREAM_NB_SAMPLES && stream_samples[i].nb < 2; i++) {
		msg.length = (uint16_t)stream_sample_put(&stream_samples[i], one);
		memcpy(san_wire_pack_put(to, &msg), one, msg.length);
		to += san_wire_pack_len(msg.kind, msg.length);
		p.length++;
	}
	return write_data(pool, pcap, "packed", (struct way){0}, p, data, (uint16_t)(to - data));
}

/** A handshake of a stream's connection. */
static int
write_cm(struct rte_mempool *pool, FILE *pcap, uint8_t msg, uint32_t features)
{
	struct wire_sample s = {"", SAN_OP_CM, .cm_msg = msg};
	struct san_wire_path path = wire_sample_path(false);
	struct san_wire_pkt p = wire_sample_pkt(&s);
	struct san_wire_cm cm = wire_sample_cm(&s);
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	int rc;

	if (m == NULL)
		return -1;
	cm.features = features;
	if (msg == SAN_CM_REP) {
		RTE_SWAP(cm.src_cid, cm.dst_cid);
		RTE_SWAP(cm.src_tag, cm.dst_tag);
	}
	san_wire_cm_build(m, &path, &p, &cm);
	san_wire_icrc_seal(m);
	rc = write_pcap(pcap, msg == SAN_CM_REP ? "cm_rep" : "cm_req", false, m);
	rte_pktmbuf_free(m);
	return rc;
}

static int
write_streams(struct rte_mempool *pool, FILE *pcap)
{
	struct way there = {0}, back = {.back = true}, stale = {.stale = true};

	if (write_cm(pool, pcap, SAN_CM_REQ, SAN_CM_FEAT_PACK) != 0 ||
	    write_cm(pool, pcap, SAN_CM_REP, SAN_CM_FEAT_PACK) != 0)
		return -1;
	if (write_sends(pool, pcap, there) != 0 || write_sends(pool, pcap, back) != 0)
		return -1;
	if (write_cm(pool, pcap, SAN_CM_REQ, FEAT_STREAM) != 0 ||
	    write_sends(pool, pcap, there) != 0 || write_sends(pool, pcap, back) != 0)
		return -1;
	if (write_cm(pool, pcap, SAN_CM_REP, FEAT_STREAM) != 0 ||
	    write_sends(pool, pcap, there) != 0 || write_sends(pool, pcap, back) != 0)
		return -1;
	if (write_sends(pool, pcap, stale) != 0)
		return -1;
	return write_long(pool, pcap) != 0 ? -1 : write_packed(pool, pcap);
}

int
main(int argc, char **argv)
{
	const struct pcap_file hdr = {
		.magic = PCAP_MAGIC,
		.major = 2,
		.minor = 4,
		.snaplen = 65535,
		.link = LINK_ETHERNET,
	};
	struct rte_mempool *pool = test_eal_pool("wire_pcap", 15, 2048);
	bool streams = argc == 3 && strcmp(argv[1], "--streams") == 0;
	FILE *pcap;
	int rc;

	if (argc == 3 && strcmp(argv[1], "--corpus") == 0)
		return write_all(pool, NULL, argv[2]) != 0;
	if (argc == 3 && strcmp(argv[1], "--messages") == 0)
		return write_messages(argv[2]) != 0;
	if (argc != 2 && !streams) {
		fprintf(stderr, "usage: wire_pcap [--streams] FILE | --corpus FOLDER | "
				"--messages FOLDER\n");
		return 2;
	}
	pcap = fopen(argv[argc - 1], "wb");
	if (pcap == NULL) {
		perror(argv[argc - 1]);
		return 1;
	}
	rc = fwrite(&hdr, sizeof(hdr), 1, pcap) == 1 ? 0 : -1;
	if (rc == 0)
		rc = streams ? write_streams(pool, pcap) : write_all(pool, pcap, "");
	return fclose(pcap) != 0 || rc != 0;
}
