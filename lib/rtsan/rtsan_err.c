/* SPDX-License-Identifier: BSD-3-Clause */

/*
 * Texts that explain failures: one text per thread, kept until the next failure, because an errno
 * names the kind of error but not the argument.
 */

#include <stdarg.h>
#include <stdio.h>

#include "rtsan_priv.h"

#define ERROR_MAX 512
#define NB(table) (sizeof(table) / sizeof((table)[0]))

static _Thread_local char error_text[ERROR_MAX];
static _Thread_local bool error_set;

int
rtsan_fail(int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error_text, sizeof(error_text), fmt, ap);
	va_end(ap);
	error_set = true;
	return rc;
}

void
rtsan_error_clear(void)
{
	error_set = false;
}

bool
rtsan_error_is_set(void)
{
	return error_set;
}

int
rtsan_fail_else(int rc, const char *what)
{
	if (rc < 0 && !error_set)
		rtsan_fail(rc, "%s: %s", what, strerror(-rc));
	return rc;
}

const char *
rtsan_error(void)
{
	return error_text[0] != '\0' ? error_text : "no error";
}

static const struct {
	const char *name, *text;
} statuses[] = {
	[RTSAN_WC_SUCCESS] = {"success", "done"},
	[RTSAN_WC_RNR_RETRY_EXC] = {"rnr_retry_exceeded", "the peer posted no receive in time"},
	[RTSAN_WC_REM_ACCESS] = {"remote_access",
				 "the peer has no such region, or it is shorter, or forbids it"},
	[RTSAN_WC_REM_LENGTH] = {"remote_length",
				 "longer than the receive that the peer had posted"},
	[RTSAN_WC_REM_REVOKED] = {"remote_revoked", "the peer revoked the region meanwhile"},
	[RTSAN_WC_REM_ALIGN] = {"remote_align", "atomic on an address that is no multiple of 8"},
	[RTSAN_WC_REM_RESOURCE] = {"remote_resource", "the peer had no resources for it"},
	[RTSAN_WC_REM_REFUSED] = {"remote_refused",
				  "the peer's upper layer, or its device, refused it"},
	[RTSAN_WC_ABORTED] = {"aborted", "given up on this side"},
	[RTSAN_WC_RETRY_EXC] = {"retry_exceeded",
				"the peer does not answer; the connection has ended"},
	[RTSAN_WC_FLUSHED] = {"flushed", "the connection ended first"},
	[RTSAN_WC_LOC_LENGTH] = {"local_length",
				 "a message longer than this receive came and was refused"},
	[RTSAN_WC_NO_BUFFERS] = {"no_buffers",
				 "no memory, or no region left, for this transfer: "
				 "nothing was sent"},
	[RTSAN_WC_CANCELLED] = {"cancelled", "cancelled, with what was moved before"},
	[RTSAN_WC_AGAIN] = {"again", "nothing is available now"},
	[RTSAN_WC_SHUTDOWN] = {"shutdown", "the stream was shut before"},
	[RTSAN_WC_PROTOCOL] = {"protocol",
			       "the peer broke the protocol of streams; the connection has ended"},
	[RTSAN_WC_INVALID] = {"invalid", "a value is out of range, or the device refused it"},
};

static const char *const reason_texts[] = {
	[RTSAN_R_NONE] = "ended by one of its two ends",
	[RTSAN_R_NO_LISTENER] = "the peer has no listener for that service",
	[RTSAN_R_REFUSED] = "refused by the peer's application",
	[RTSAN_R_RESOURCES] = "one of the two ends has no resources for another connection",
	[RTSAN_R_PKEY] = "the listener is in another partition",
	[RTSAN_R_PARAMETER] = "a connection parameter is out of the peer's range",
	[RTSAN_R_VERSION] = "the peer speaks another version of the protocol",
	[RTSAN_R_BACKLOG] = "too many requests wait at the peer's listener",
	[RTSAN_R_TIMEOUT] = "the peer does not answer any more",
	[RTSAN_R_STALE] = "the peer has restarted and does not know the connection",
	[RTSAN_R_MALFORMED] = "a work queue held an invalid entry",
	[RTSAN_R_PATH_MTU] = "the network no longer carries packets of the length in use",
};

const char *
rtsan_status_name(uint8_t status)
{
	const char *name = status < NB(statuses) ? statuses[status].name : NULL;

	return name != NULL ? name : "unknown";
}

const char *
rtsan_status_text(uint8_t status)
{
	const char *text = status < NB(statuses) ? statuses[status].text : NULL;

	return text != NULL ? text : "unknown";
}

const char *
rtsan_reason_text(uint8_t reason)
{
	const char *text = reason < NB(reason_texts) ? reason_texts[reason] : NULL;

	return text != NULL ? text : "unknown";
}
