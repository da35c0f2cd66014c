/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * Keys of a configuration. A table describes each key once: reader, writer, messages and manual
 * pages use it. INI files, arguments and "key=value" words have the same values and units. (SYS-11)
 *
 * Not here: files and lines. Nothing is allocated, so libsansock uses this, too.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAN_KEY_TEXT 256 /**< bytes that are enough for a value or a range */

enum san_key_type {
	SAN_KEY_NUMBER, /**< 123, 0x7b, 64K, 1M, 1G (of 1024) */
	SAN_KEY_TIME,   /**< 10us: ns, us, ms, s */
	SAN_KEY_SIZE,   /**< 64KiB: B, KiB, MiB, GiB, or as a number */
	SAN_KEY_RATE,   /**< 25Gb/s: Mb/s, Gb/s */
	SAN_KEY_PART,   /**< 0.01, 1e-2 or 1% */
	SAN_KEY_BOOL,   /**< on, off; yes, no, 1 and 0 are the same */
	SAN_KEY_WORD,   /**< words[min] to words[max]; the value is the place */
	SAN_KEY_STRING, /**< 1 to *size* - 1 characters */
	SAN_KEY_OWN,    /**< what set() reads */
};

struct san_key {
	const char *section, *name, *help;
	enum san_key_type type;
	size_t offset, size; /**< of the field, an unsigned integer or an array of characters */
	uint64_t min, max;   /**< of the field; a value beyond *max* or below *min* is not set */
	uint64_t one;        /**< field for the text "1" without a unit; 0: it needs a unit */
	uint64_t per;        /**< ns or bytes for 1 of the field */
	const char *const *words;
	/** SAN_KEY_OWN: returns NULL, or a text of what is valid. *size* 0: it is not written. */
	const char *(*set)(void *base, const char *text);
	/** Instead of set(), for a list: 0, or -EINVAL and which element is wrong, and why. */
	int (*set_list)(void *field, const char *text, char *err, size_t err_len);
	const char *form; /**< SAN_KEY_OWN: what is valid */
	const char *old;  /**< a name of before, which is still read; NULL: none */
	bool is_live;     /**< may change while the program runs */
	bool repeats;     /**< may be given several times; each adds to the others */
};

/*
 * Kinds of values, for field *f* of struct *s*. A time or size has bounds and unit of the field:
 * SAN_KEY_MS() is a field in milliseconds.
 */
#define SAN_KEY_AT(s, f) .offset = offsetof(struct s, f), .size = sizeof(((struct s *)0)->f)
#define SAN_KEY_UINT(t, s, f, lo, hi, o, p) \
	.type = t, SAN_KEY_AT(s, f), .min = lo, .max = hi, .one = o, .per = p
#define SAN_KEY_NUM(s, f, lo, hi) SAN_KEY_UINT(SAN_KEY_NUMBER, s, f, lo, hi, 1, 1)
/* the text counts units of *o* */
#define SAN_KEY_NUM_OF(s, f, lo, hi, o) \
	SAN_KEY_UINT(SAN_KEY_NUMBER, s, f, (lo) * (o), (hi) * (o), o, 1)
#define SAN_KEY_NS(s, f, lo, hi)    SAN_KEY_UINT(SAN_KEY_TIME, s, f, lo, hi, 0, 1)
#define SAN_KEY_US(s, f, lo, hi)    SAN_KEY_UINT(SAN_KEY_TIME, s, f, lo, hi, 0, 1000)
#define SAN_KEY_MS(s, f, lo, hi)    SAN_KEY_UINT(SAN_KEY_TIME, s, f, lo, hi, 0, 1000000)
#define SAN_KEY_BYTES(s, f, lo, hi) SAN_KEY_UINT(SAN_KEY_SIZE, s, f, lo, hi, 1, 1)
#define SAN_KEY_MBPS(s, f, lo, hi)  SAN_KEY_UINT(SAN_KEY_RATE, s, f, lo, hi, 0, 1)
#define SAN_KEY_RATIO(s, f, all)    SAN_KEY_UINT(SAN_KEY_PART, s, f, 0, all, all, 1)
#define SAN_KEY_ON_OFF(s, f)        SAN_KEY_UINT(SAN_KEY_BOOL, s, f, 0, 1, 1, 1)
#define SAN_KEY_CHOICE(s, f, w) \
	SAN_KEY_UINT(SAN_KEY_WORD, s, f, 0, sizeof(w) / sizeof((w)[0]) - 1, 1, 1), .words = w
#define SAN_KEY_CHARS(s, f)   .type = SAN_KEY_STRING, SAN_KEY_AT(s, f), .min = 1
#define SAN_KEY_READ(fn, how) .type = SAN_KEY_OWN, .set = fn, .form = how
#define SAN_KEY_LIST(fn, how) .type = SAN_KEY_OWN, .set_list = fn, .form = how

/**
 * Find a key in a table that ends with a zeroed entry. A time may have its unit behind the name:
 * rto_us=500 is rto=500us.
 *
 * @param section
 *   NULL: of any section.
 */
const struct san_key *san_key_find(const struct san_key *keys, const char *section,
				   const char *name);
/**
 * Set the field of *k* in *base*.
 *
 * @param name
 *   The key as it was written, for the message and the unit behind it.
 * @return
 *   0; -EINVAL: not valid, *err* has key, value and what is valid, and nothing has changed.
 *   Of a list the elements before the wrong one may be set.
 */
int san_key_set(const struct san_key *k, void *base, const char *name, const char *text, char *err,
		size_t err_len);
/** Set the text of an error. Returns -EINVAL. */
int san_key_fail(char *err, size_t err_len, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/** Read a SAN_KEY_NUMBER. */
bool san_key_number(const char *text, uint64_t *out);
/** Write the value as san_key_set() reads it. False: it is not set, and *buf* is empty. */
bool san_key_value(const struct san_key *k, const void *base, char *buf, size_t len);
/** What is valid: "1us to 60s", "on or off". */
void san_key_valid(const struct san_key *k, char *buf, size_t len);
