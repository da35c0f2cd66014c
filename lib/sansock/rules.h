/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Which sockets are carried: the rules of sansock.conf(5) and of the environment. The first rule
 * that matches decides. A socket that no rule matches stays with the kernel. (UDP-2)
 *
 * The library that uses this starts inside any program. So nothing is allocated, all state is the
 * caller's, and DPDK is not used. Files are read by syscall(2), because the library intercepts
 * read() and close().
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "san_key.h"

#define SOCK_RULES_MAX 128
#define SOCK_GLOB_MAX  64  /**< bytes of a program's pattern, with the final NUL */
#define SOCK_LINE_MAX  256 /**< bytes of a line */
#define SOCK_FILE_MAX  256 /**< bytes of the file's name */
#define SOCK_PATH_MAX  108 /**< bytes of the path of the daemon's socket: as in sockaddr_un */
#define SOCK_NAME_MAX  32  /**< bytes of the name of the daemon's port */
#define SOCK_ERR_MAX   640 /**< bytes of an error text: a place and a line */

#define SOCK_RULES_FILE "/etc/sanstack/sansock.conf"
#define SOCK_ENV_FILE   "SANSOCK_CONF"  /**< instead of that file */
#define SOCK_ENV_RULES  "SANSOCK_RULES" /**< before the rules of the file */

/** What is done with a socket. */
enum sock_action {
	SOCK_KERNEL = 0, /**< left to the kernel, as without the library */
	SOCK_CARRY,      /**< carried; nothing is received from the kernel */
	SOCK_BOTH,       /**< carried, and received from the kernel's interfaces, too */
	SOCK_DROP,       /**< refused with EPERM, as by a firewall of this host */
	SOCK_ACTIONS,
};

/** What the library logs on stderr. */
enum sock_log {
	SOCK_LOG_OFF = 0,
	SOCK_LOG_ERROR,
	SOCK_LOG_INFO, /**< also what was done with each socket, and by which rule */
};

/** Addresses and ports. */
struct sock_range {
	bool is_set;         /**< false: the rule has no condition on this end */
	uint8_t bits;        /**< length of the prefix */
	uint16_t family;     /**< AF_INET, AF_INET6, or AF_UNSPEC: any address */
	uint16_t port_min;   /**< 0 with port_max 65535: any port, also one not chosen yet */
	uint16_t port_max;   /**< the last port of the range */
	uint8_t address[16]; /**< network byte order; zero behind the prefix */
};

struct sock_rule {
	enum sock_action action;
	int proto; /**< IPPROTO_UDP, IPPROTO_TCP; 0: any */
	bool has_user;
	bool is_from_env; /**< *line* is the number of a rule in the environment */
	uid_t user;
	uint32_t line;               /**< from 1 */
	char program[SOCK_GLOB_MAX]; /**< with * and ?; "": any */
	struct sock_range local, remote;
};

struct sock_settings {
	char daemon[SOCK_PATH_MAX]; /**< path of its UNIX socket */
	char port[SOCK_NAME_MAX];   /**< "": the daemon's first one */
	uint32_t spin_us;           /**< longest poll before a blocking call sleeps */
	uint32_t probe_ms;          /**< longest wait for a daemon of the peer */
	uint32_t short_calls;       /**< connections with fewer calls are better the kernel's */
	uint32_t answer_s;          /**< longest wait for an answer of our daemon */
	enum sock_log log;
};

struct sock_rules {
	uint32_t nb_rules;
	uint32_t set; /**< bits of settings that an earlier source had, which wins */
	struct sock_settings settings;
	char file[SOCK_FILE_MAX];
	struct sock_rule rules[SOCK_RULES_MAX];
};

/** What is known of a socket when the rules are evaluated. */
struct sock_query {
	const char *program; /**< last part of the link /proc/self/exe */
	const char *called;  /**< last part of argv[0], which may be a link's name; or NULL */
	uid_t uid;
	int proto;                     /**< IPPROTO_UDP or IPPROTO_TCP */
	bool is_v6only;                /**< :: does not include IPv4 addresses */
	const struct sockaddr *local;  /**< NULL: not bound */
	const struct sockaddr *remote; /**< NULL: not known */
};

struct sock_verdict {
	enum sock_action action;
	const struct sock_rule *rule; /**< the rule that decides; NULL: none */
	/**
	 * *rule* covers only some of the addresses of a wildcard. Then *rest* covers all others;
	 * NULL: no rule does, and they are the kernel's.
	 */
	bool is_part;
	const struct sock_rule *rest;
};

/** The settings, sansock.conf(5), over struct sock_settings. */
extern const struct san_key rules_settings[];

/** No rules, and all settings have their defaults. */
void san_rules_read_init(struct sock_rules *rules);

/**
 * Add the rules and settings of a text, as in SANSOCK_RULES: lines end with ; or a newline. 0;
 * -EINVAL, with the place and the reason in *err* (SOCK_ERR_MAX bytes are enough).
 */
int san_rules_read_text(struct sock_rules *rules, const char *text, char *err, size_t err_len);
/** Add those of the file *path*. As above, or -errno of reading it, with a text in *err*, too. */
int san_rules_read_file(struct sock_rules *rules, const char *path, char *err, size_t err_len);
/**
 * Initialize, then add the rules and settings of this process: of its environment, unless it is
 * set-uid, then of the file. A missing file at the usual path is no error. Result as above. After
 * an error *rules* must not be used: it has what was read before the error.
 */
int san_rules_read_all(struct sock_rules *rules, char *err, size_t err_len);

/**
 * Find the first rule that matches. A condition on an address that is not known is not met.
 *
 * Every address of this host reaches a socket that is bound to a wildcard (0.0.0.0, ::). A rule
 * that covers some of them decides for these: "carry local 10.0.0.1:5000" carries what a server on
 * 0.0.0.0:5000 receives by 10.0.0.1 and leaves it the rest, so the action is SOCK_BOTH. Most
 * servers bind to a wildcard. A rule that did not match them would seldom have an effect, and one
 * that carried them as a whole would cut them off from their other addresses. A socket is refused
 * if a rule drops a part of it: otherwise the wildcard would receive what the rule forbids.
 */
struct sock_verdict san_rules_match(const struct sock_rules *rules, const struct sock_query *q);
/** Name of the rule's first condition that the socket does not meet; NULL: all are met. */
const char *san_rules_rule_misses(const struct sock_rule *rule, const struct sock_query *q);
/** An earlier rule that matches all that *rule* does, which so has no effect; NULL: none. */
const struct sock_rule *san_rules_shadow(const struct sock_rules *rules,
					 const struct sock_rule *rule);
/** Whether the first *bits* of *prefix* are those of *address*. */
bool san_rules_is_prefix(const uint8_t *prefix, uint32_t bits, const uint8_t *address);
/** "FILE:LINE" of a rule. */
void san_rules_place(const struct sock_rules *rules, const struct sock_rule *rule, char *text,
		     size_t len);
/** Text of a rule, as in a file; a user is a number. SOCK_LINE_MAX bytes are enough. */
void san_rules_rule_text(const struct sock_rule *rule, char *text, size_t len);
/** The actions' words in rules. */
extern const char *const rules_action_names[SOCK_ACTIONS];
