/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Writes a pcapng file of a simulation, for test_sim_pcapng.py: two interfaces, and times,
 * directions and comments that the test knows.
 *
 * usage: sim_pcapng FILE.pcapng
 */

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "sim_trace.h"

static const struct {
	uint64_t at_ns;
	uint32_t len;
	const char *comment;
	uint32_t iface;
	bool is_out;
} packets[] = {
	{0, 60, NULL, 0, true},
	{1, 61, "dropped: queue full", 1, false},
	{999999999, 62, "", 0, false},
	{1000000000, 63, NULL, 1, true},
	{4294967295, 1514, NULL, 0, true},
	{4294967296, 1514, "marked: 100 % of 32 KiB, \xc3\xa9t\xc3\xa9", 1, true},
	{86400000000001, 9014, NULL, 0, false},
	/* Time may go backwards. */
	{1234567890123, 65535, NULL, 0, true},
};

int
main(int argc, char **argv)
{
	static uint8_t frame[65536];
	struct sim_trace *t;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: sim_pcapng FILE.pcapng\n");
		return 2;
	}
	for (uint32_t i = 0; i < sizeof(frame); i++)
		frame[i] = (uint8_t)i;
	rc = san_sim_trace_open(argv[1], &t);
	if (rc == 0) {
		san_sim_trace_interface(t, "h0");
		san_sim_trace_interface(t, "leaf1 port 3");
		for (uint32_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++)
			san_sim_trace_packet(t, packets[i].iface, packets[i].at_ns,
					     packets[i].is_out, frame, packets[i].len,
					     packets[i].comment);
		rc = san_sim_trace_close(t);
	}
	if (rc != 0)
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-rc));
	return rc != 0;
}
