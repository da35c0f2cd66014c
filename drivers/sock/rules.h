/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SOCK_RULES_H
#define SOCK_RULES_H

/**
 * @file
 * Which sockets are carried: the rules of sansock.conf(5) and of the environment. The first that
 * matches wins; what none matches stays with the kernel. (UDP-2)
 *
 * For a library that starts inside any program: nothing is allocated, there is no state but the
 * caller's, no DPDK, and files are read by syscall(2), because that library takes read() and
 * close() itself.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#define SOCK_RULES_MAX 128
#define SOCK_GLOB_MAX  64  /**< bytes of a program's pattern, with its end */
#define SOCK_LINE_MAX  256 /**< of a line */
#define SOCK_FILE_MAX  256 /**< of the file's own name */
#define SOCK_PATH_MAX  108 /**< of the daemon's socket: as in sockaddr_un */
#define SOCK_NAME_MAX  32  /**< of the daemon's port */
#define SOCK_ERR_MAX   640 /**< of what is wrong: a place and a line */

#define SOCK_RULES_FILE "/etc/sanstack/sansock.conf"
#define SOCK_ENV_FILE   "SANSOCK_CONF"  /**< instead of that file */
#define SOCK_ENV_RULES  "SANSOCK_RULES" /**< before those of the file */

/** What becomes of a socket. */
enum sock_action {
	SOCK_KERNEL = 0, /**< as if the library were not there */
	SOCK_CARRY,      /**< carried, and nothing comes from the kernel */
	SOCK_BOTH,       /**< carried, and from the kernel's interfaces, too */
	SOCK_DROP,       /**< refused with EPERM, as a firewall of this host does */
	SOCK_ACTIONS,
};

/** What the library tells, on stderr. */
enum sock_log {
	SOCK_LOG_OFF = 0,
	SOCK_LOG_ERROR,
	SOCK_LOG_INFO, /**< also what became of each socket, and by which rule */
};

/** Addresses and ports. */
struct sock_range {
	bool is_set;         /**< false: a rule does not ask for this end */
	uint8_t bits;        /**< of the address that count */
	uint16_t family;     /**< AF_INET, AF_INET6, or AF_UNSPEC: any address */
	uint16_t port_min;   /**< 0 with a port_max of 65535: any, also one not chosen yet */
	uint16_t port_max;   /**< the last one that is in it */
	uint8_t address[16]; /**< in network order; zero beyond *bits* */
};

struct sock_rule {
	enum sock_action action;
	int proto; /**< IPPROTO_UDP, IPPROTO_TCP; 0: any */
	bool has_user;
	bool is_from_env; /**< *line* is the number of a rule there */
	uid_t user;
	uint32_t line;               /**< from 1 */
	char program[SOCK_GLOB_MAX]; /**< with * and ?; "": any */
	struct sock_range local, remote;
};

struct sock_settings {
	char daemon[SOCK_PATH_MAX]; /**< its UNIX socket */
	char port[SOCK_NAME_MAX];   /**< "": its first one */
	uint32_t spin_us;           /**< polled before a blocking call sleeps, at most */
	uint32_t probe_ms;          /**< waited for a daemon of the peer */
	uint32_t answer_s;          /**< waited for an answer of our daemon */
	enum sock_log log;
};

struct sock_rules {
	uint32_t nb_rules;
	uint32_t set; /**< settings that a source before had: they win */
	struct sock_settings settings;
	char file[SOCK_FILE_MAX];
	struct sock_rule rules[SOCK_RULES_MAX];
};

/** A socket, as far as it is known when it is asked for. */
struct sock_query {
	const char *program; /**< last part of what /proc/self/exe is */
	const char *called;  /**< the same of argv[0], which a link may name; or NULL */
	uid_t uid;
	int proto;                     /**< IPPROTO_UDP or IPPROTO_TCP */
	bool is_v6only;                /**< :: does not stand for IPv4 addresses */
	const struct sockaddr *local;  /**< NULL: not bound */
	const struct sockaddr *remote; /**< NULL: not known */
};

struct sock_verdict {
	enum sock_action action;
	const struct sock_rule *rule; /**< who says so; NULL: nobody */
	/**
	 * *rule* is about some of the addresses that a wildcard stands for.
	 * Then *rest* is about all that are left; NULL: nobody is, and they are the kernel's.
	 */
	bool is_part;
	const struct sock_rule *rest;
};

/** No rules, and each setting its default. */
void sock_rules_init(struct sock_rules *rules);

/**
 * Add what a text has, as SANSOCK_RULES: lines that end with ; or a new line.
 *
 * @return
 *   0; -EINVAL, with the place and what is wrong in *err* (SOCK_ERR_MAX is enough).
 */
int sock_rules_add_text(struct sock_rules *rules, const char *text, char *err, size_t err_len);

/** Add what *path* has. @return as above, or -errno of reading it, told in *err*, too. */
int sock_rules_add_file(struct sock_rules *rules, const char *path, char *err, size_t err_len);

/**
 * Begin anew with what this process is told: by its environment, unless it is set-uid, then by
 * the file. Without a file at its usual place there are no rules in it, which is no error.
 *
 * @return
 *   as above. After an error the rules are not to be used: they are those before it.
 */
int sock_rules_load(struct sock_rules *rules, char *err, size_t err_len);

/**
 * The first rule that matches. A condition on an address that is not known is not met.
 *
 * A socket that is bound to a wildcard (0.0.0.0, ::) is reached by every address of this host,
 * and a rule about some of them decides for these: "carry local 10.0.0.1:5000" carries what a
 * server on 0.0.0.0:5000 gets by 10.0.0.1, and leaves it the rest, so it is SOCK_BOTH. That
 * such a rule did not match would surprise whoever wrote it, because most servers bind so;
 * that it took the server away from all other addresses would be worse. What is refused in part
 * is refused: the kernel would let in by the wildcard what the rule forbids.
 */
struct sock_verdict sock_rules_match(const struct sock_rules *rules, const struct sock_query *q);

/** The first condition of a rule that a socket does not meet, as it is called; NULL: all are. */
const char *sock_rule_misses(const struct sock_rule *rule, const struct sock_query *q);

/** One before it that matches whatever *rule* would: it never does. NULL: there is none. */
const struct sock_rule *sock_rules_shadow(const struct sock_rules *rules,
					  const struct sock_rule *rule);

/** "FILE:LINE" of a rule. */
void sock_rules_place(const struct sock_rules *rules, const struct sock_rule *rule, char *text,
		      size_t len);

/** A rule as it could stand in a file; a user by number. SOCK_LINE_MAX is enough. */
void sock_rule_text(const struct sock_rule *rule, char *text, size_t len);

/** As rules call it. */
const char *sock_action_name(enum sock_action action);

#endif /* SOCK_RULES_H */
