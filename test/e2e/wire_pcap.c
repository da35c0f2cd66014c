/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Writes one packet of every type and variety, over IPv4 and IPv6, as lib/wire
 * builds them: for tshark and scapy to judge, and as seeds for the fuzzer.
 *
 * usage: wire_pcap FILE.pcap        all packets; prints "frame name version" per packet
 *        wire_pcap --corpus FOLDER  one file per packet
 */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "unit/test_eal.h"
#include "wire_sample.h"

#define PCAP_MAGIC    0xa1b2c3d4
#define LINK_ETHERNET 1

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
write_pcap(FILE *f, const struct wire_sample *s, bool v6, const void *data, uint32_t len)
{
	static uint32_t frame;
	struct pcap_packet hdr = {.sec = ++frame, .caplen = len, .len = len};

	printf("%u %s %d\n", frame, s->name, v6 ? 6 : 4);
	if (fwrite(&hdr, sizeof(hdr), 1, f) != 1 || fwrite(data, len, 1, f) != 1)
		return -1;
	return 0;
}

static int
write_all(struct rte_mempool *pool, FILE *pcap, const char *folder)
{
	struct rte_mbuf *m;
	char path[4096];
	unsigned int i;
	int v6, rc = 0;

	for (i = 0; i < RTE_DIM(wire_samples) * 2 && rc == 0; i++) {
		v6 = i & 1;
		m = wire_sample_build(pool, &wire_samples[i / 2], v6);
		if (m == NULL)
			return -1;
		snprintf(path, sizeof(path), "%s/%s_v%d.bin", folder, wire_samples[i / 2].name,
			 v6 ? 6 : 4);
		if (pcap != NULL)
			rc = write_pcap(pcap, &wire_samples[i / 2], v6,
					rte_pktmbuf_mtod(m, void *), rte_pktmbuf_data_len(m));
		else
			rc = write_file(path, rte_pktmbuf_mtod(m, void *),
					rte_pktmbuf_data_len(m));
		rte_pktmbuf_free(m);
	}
	return rc;
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
	FILE *pcap;
	int rc;

	if (argc == 3 && strcmp(argv[1], "--corpus") == 0)
		return write_all(pool, NULL, argv[2]) != 0;
	if (argc != 2) {
		fprintf(stderr, "usage: wire_pcap FILE | --corpus FOLDER\n");
		return 2;
	}
	pcap = fopen(argv[1], "wb");
	if (pcap == NULL) {
		perror(argv[1]);
		return 1;
	}
	rc = fwrite(&hdr, sizeof(hdr), 1, pcap) == 1 ? write_all(pool, pcap, "") : -1;
	return fclose(pcap) != 0 || rc != 0;
}
