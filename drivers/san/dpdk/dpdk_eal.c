/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * DESIGN NOTES
 *
 * EAL can start once in a process and, in practice, not again. So it keeps running when a context
 * is closed, and a later context may use it with the same arguments. The port's device is removed,
 * and with it sockets and rings that a peer could see. It is probed again when the next context is
 * opened.
 */

#include <net/if.h>
#include <stdlib.h>

#include <rte_bus.h>
#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_ethdev.h>

#include "dpdk_priv.h"

#define BLANKS " \t\n"

static char *started_args; /* NULL: EAL does not run */
static char removed[640];  /* "bus:name,args" of the device; empty: none */

/* Copy one word of *text* to *to*. NULL: a quote is open, or there is no room. */
static const char *
take_word(const char *text, char **to, const char *end)
{
	char quote = '\0', *at = *to;

	for (; *text != '\0' && (quote != '\0' || strchr(BLANKS, *text) == NULL); text++) {
		if (quote == '\0' ? *text == '\'' || *text == '"' : *text == quote) {
			quote = quote == '\0' ? *text : '\0';
			continue;
		}
		if (at + 1 >= end)
			return NULL;
		*at++ = *text;
	}
	if (quote != '\0' || at >= end)
		return NULL;
	*at++ = '\0';
	*to = at;
	return text;
}

int
san_dpdk_eal_split(const char *text, char *buf, size_t size, char **words, int max)
{
	char *at = buf;
	int n = 0;

	for (;;) {
		text += strspn(text, BLANKS);
		if (*text == '\0')
			return n;
		if (n == max)
			return -E2BIG;
		words[n] = at;
		text = take_word(text, &at, buf + size);
		if (text == NULL)
			return -EINVAL;
		n++;
	}
}

/* Join the arguments to compare them with those that EAL started with. */
static char *
dpdk_eal_join_args(int argc, char *const *argv)
{
	size_t len = 1;
	char *s;
	int i;

	for (i = 0; i < argc; i++)
		len += strlen(argv[i]) + 1;
	s = calloc(1, len);
	for (i = 0; s != NULL && i < argc; i++) {
		strcat(s, argv[i]);
		strcat(s, "\n");
	}
	return s;
}

static const char *const device_options[] = {"--vdev", "--allow", "-a", NULL};

/*
 * Returns X if *words* have "--vdev X", "--vdev=X", "-a X", "-aX" and the like at *i*, which
 * becomes the place of X; NULL: another argument.
 */
static char *
value_of(const char *const options[], char *const *words, int nb, int *i)
{
	char *word = words[*i];
	size_t len;

	for (; *options != NULL; options++) {
		len = strlen(*options);
		if (strncmp(word, *options, len) != 0)
			continue;
		if (word[len] == '\0')
			return *i + 1 < nb ? words[++*i] : NULL;
		if (word[len] == '=')
			return &word[len + 1];
		if ((*options)[1] != '-')
			return &word[len];
	}
	return NULL;
}

/* Mark the lcores of "0@0,(1-3)@(4,5),6", whose CPUs follow @. */
static void
eal_mark_lcores(const char *text, bool lcores[RTE_MAX_LCORE])
{
	unsigned long from, to;
	char *end;

	while (*text != '\0') {
		if (*text == '@') {
			text += strcspn(text, text[1] == '(' ? ")" : ",");
			continue;
		}
		from = to = strtoul(text, &end, 10);
		if (end == text) { /* a comma or a parenthesis */
			text++;
			continue;
		}
		if (*end == '-')
			to = strtoul(end + 1, &end, 10);
		for (; from <= to && from < RTE_MAX_LCORE; from++)
			lcores[from] = true;
		text = end;
	}
}

bool
san_dpdk_eal_workers(char *const *words, int nb, bool workers[RTE_MAX_LCORE])
{
	static const char *const lists[] = {"--lcores", "-l", NULL};
	static const char *const mains[] = {"--main-lcore", NULL};
	unsigned long main_lcore = 0;
	bool has_list = false, has_main = false;
	const char *value;
	int i;

	memset(workers, 0, RTE_MAX_LCORE * sizeof(*workers));
	for (i = 0; i < nb; i++) {
		value = value_of(lists, words, nb, &i);
		if (value != NULL) {
			eal_mark_lcores(value, workers);
			has_list = true;
			continue;
		}
		value = value_of(mains, words, nb, &i);
		if (value != NULL) {
			main_lcore = strtoul(value, NULL, 10);
			has_main = true;
		}
	}
	while (!has_main && main_lcore + 1 < RTE_MAX_LCORE && !workers[main_lcore])
		main_lcore++;
	if (main_lcore < RTE_MAX_LCORE)
		workers[main_lcore] = false;
	return has_list;
}

/* Check what a device needs of this host, before it is created. */
static int
eal_prepare_device(const char *device, bool is_first, const struct rtsan_host *host)
{
	char name[64];
	int rc = san_dpdk_memif_clear(device, is_first, host);

	if (rc != 0)
		return rc;
	/* drivers on an interface of the kernel: their own error only says that an ioctl failed */
	if (strncmp(device, "net_af_", strlen("net_af_")) != 0 ||
	    !san_dpdk_memif_device_value(device, "iface", name, sizeof(name)) ||
	    if_nametoindex(name) != 0)
		return 0;
	return host->fail(-ENODEV, "interface %s of %.*s does not exist; see ip link", name,
			  (int)strcspn(device, ","), device);
}

static int
eal_prepare_devices(int argc, char *const *argv, const struct rtsan_host *host)
{
	const char *device;
	int i, rc = 0;

	for (i = 1; i < argc && rc == 0; i++) {
		device = value_of(device_options, argv, argc, &i);
		if (device != NULL)
			rc = eal_prepare_device(device, true, host);
	}
	return rc;
}

static int
eal_probe(const char *device, const struct rtsan_host *host)
{
	int rc = rte_dev_probe(device);

	if (rc == 0 || rc == -EEXIST)
		return 0;
	return host->fail(-ENODEV, "device %s: %s", device, rte_strerror(-rc));
}

static int
eal_init(int argc, char *const *argv, const struct rtsan_host *host)
{
	/* EAL registers log types when it starts; this is for telemetry's "No legacy callbacks" */
	static char telemetry_level[] = "--log-level=lib.telemetry:error";
	char *copy[DPDK_ARGS_MAX + 2] = {NULL};
	int rc = eal_prepare_devices(argc, argv, host), i;

	if (rc != 0)
		return rc;
	for (i = 0; i < argc; i++)
		copy[i] = argv[i];    /* EAL reorders them */
	copy[argc] = telemetry_level; /* the first level of a type wins: the caller's, if any */
	/* only warnings; --log-level=lib.*:info among the arguments shows more */
	rte_log_set_level_pattern("lib.*", RTE_LOG_WARNING);
	if (rte_eal_init(argc + 1, copy) < 0)
		return host->fail(rte_errno == ENOMEM ? -ENOMEM : -EINVAL,
				  "EAL does not start%s%s; its own message says more%s",
				  rte_errno != 0 ? ": " : "",
				  rte_errno != 0 ? rte_strerror(rte_errno) : "",
				  rte_errno == EACCES || rte_errno == ENOMEM ?
					  " (without hugepages: --no-huge -m 512)" :
					  " (is there another program with this --file-prefix?)");
	/*
	 * Not rte_eal_cleanup(). It unmaps memory that EAL's interrupt thread still uses, because
	 * memif leaves its listener among the sources (DPDK 22.11), and the process crashes at its
	 * end. The kernel releases everything anyway.
	 */
	atexit(san_dpdk_ctx_halt);
	return 0;
}

int
san_dpdk_eal_start(int argc, char *const *argv, const struct rtsan_host *host)
{
	char *args = dpdk_eal_join_args(argc, argv);
	int rc;

	if (args == NULL || argc > DPDK_ARGS_MAX)
		rc = host->fail(-EINVAL, "too many EAL arguments");
	else if (started_args == NULL)
		rc = eal_init(argc, argv, host);
	else if (strcmp(args, started_args) != 0)
		rc = host->fail(-EINVAL, "EAL runs with other arguments; it starts only once");
	else
		rc = removed[0] != '\0' ? eal_probe(removed, host) : 0;
	if (rc == 0)
		removed[0] = '\0';
	if (rc == 0 && started_args == NULL)
		started_args = args;
	else
		free(args);
	return rc;
}

struct rte_device *
san_dpdk_eal_device(uint16_t port_id)
{
	struct rte_eth_dev_info info;

	if (rte_eth_dev_info_get(port_id, &info) != 0)
		return NULL;
	return (struct rte_device *)(uintptr_t)info.device;
}

int
san_dpdk_eal_take_devices(char **words, int *nb, char **devices)
{
	int i, left = 0, n = 0;

	for (i = 0; i < *nb; i++) {
		char *device = value_of(device_options, words, *nb, &i);

		if (device != NULL)
			devices[n++] = device;
		else
			words[left++] = words[i];
	}
	*nb = left;
	return n;
}

int
san_dpdk_eal_probe(const char *device, const struct rtsan_host *host)
{
	int rc = eal_prepare_device(device, false, host);

	return rc == 0 ? eal_probe(device, host) : rc;
}

void
san_dpdk_eal_remove(struct rte_device *dev)
{
	const struct rte_devargs *args;

	if (dev == NULL)
		return;
	args = rte_dev_devargs(dev);
	snprintf(removed, sizeof(removed), "%s:%s,%s", rte_bus_name(rte_dev_bus(dev)),
		 rte_dev_name(dev), args != NULL && args->args != NULL ? args->args : "");
	/*
	 * rte_dev_remove() asks secondary processes first, through files of EAL. A daemon that has
	 * changed its user cannot read them, and its device would stay.
	 */
	if (rte_vdev_uninit(rte_dev_name(dev)) == -ENODEV)
		rte_dev_remove(dev);
}
