/* SPDX-License-Identifier: BSD-3-Clause */
#pragma once

/**
 * @file
 * What two providers send to each other: private data of the connection's setup, and the headers of
 * messages, in little-endian order. Each message fills a receive of the peer's pool, for which the
 * sender holds a credit of the message's class. (OFI-1)
 */

#include <assert.h>
#include <stdint.h>

#include "rtsan.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "headers are not converted");

#define OFI_CM_MAGIC   0x49464f53u /* "SOFI" */
#define OFI_CM_VERSION 2

/** Service of a port: the upper half keeps away from the numbers of other programs. */
#define OFI_SERVICE(port) (0x53414e4f46490000ull | (port))

/** Of the port of an endpoint FI_EP_RDM. */
#define OFI_RDM_SERVICE(port) (0x53414e4f46520000ull | (port))

#define OFI_BUF_SIZE  16640 /* bytes of a receive: a packet of ofi_rxm and a header */
#define OFI_NB_MSG    64    /* receives of a pool for messages */
#define OFI_NB_RMA    32    /* for requests and answers, which are consumed at once */
#define OFI_NB_CREDIT 9     /* for messages that only return credits, and the last one */
#define OFI_NB_RX     (OFI_NB_MSG + OFI_NB_RMA + OFI_NB_CREDIT)
#define OFI_DUE(nb)   ((nb) / 4) /* that many return alone */
#define OFI_REQUESTS  1024       /* operations of an endpoint, or long messages of its peer */
#define OFI_LENGTH    UINT32_MAX /* bytes of a message, read or write: the header has 32 bits */

static_assert(OFI_NB_MSG / OFI_DUE(OFI_NB_MSG) + OFI_NB_RMA / OFI_DUE(OFI_NB_RMA) <
		      OFI_NB_CREDIT,
	      "one credit message for each quarter that the peer has not seen");

/** Private data of a request, an acceptance and a refusal; the program's follows. */
struct ofi_cm_hdr {
	uint32_t magic;
	uint8_t version;
	uint8_t length;          /**< of the program's data */
	uint16_t port;           /**< of the connecting endpoint */
	uint16_t nb_msg, nb_rma; /**< credits */
	uint32_t buf_size;
};

#define OFI_CM_DATA (RTSAN_PRIVATE_MAX - sizeof(struct ofi_cm_hdr))
#define OFI_PROOF   16

/** Data of FI_EP_RDM in a request: proofs that tokens are known. An acceptance has one proof. */
struct ofi_rdm_req {
	uint8_t nonce[OFI_PROOF];
	uint8_t knows[OFI_PROOF]; /**< of the accepting endpoint's token */
	uint8_t owns[OFI_PROOF];  /**< of the connecting endpoint's token */
};

enum ofi_type {
	OFI_MSG = 1,       /**< a message; *addr* is its tag */
	OFI_WRITE = 2,     /**< a part of a write; the last one is answered by an ACK */
	OFI_READ = 3,      /**< answered by READ_DATA */
	OFI_ATOMIC = 4,    /**< answered by an ACK */
	OFI_DATA = 5,      /**< CQ data of a write that the transport has executed */
	OFI_ACK = 6,       /**< *status*; of an atomic the old value in *data* */
	OFI_READ_DATA = 7, /**< a part of what was read; *status* in the last one */
	OFI_CREDIT = 8,    /**< credits only */
	OFI_TYPES,
};

enum ofi_type_flags {
	OFI_FIRST = 0x1,
	OFI_LAST = 0x2,
	OFI_CQ_DATA = 0x4,  /**< *data* is CQ data */
	OFI_WANT_ACK = 0x8, /**< a message: answer when it has been received */
	OFI_TAGGED = 0x10,  /**< a message of FI_EP_RDM */
	OFI_PLACES = 0x20,  /**< a message: where the bytes are to be read (struct ofi_place) */
};

struct ofi_hdr {
	uint8_t type;      /**< enum ofi_type */
	uint8_t flags;     /**< enum ofi_type_flags */
	uint8_t credit[2]; /**< returned, by enum ofi_class */
	uint32_t id;       /**< of the request, or of the request that is answered */
	uint32_t length;   /**< of all bytes (MSG, READ); ATOMIC: of the old value, 0: unwanted */
	uint32_t status;   /**< errno of libfabric; ATOMIC: enum ofi_atomic */
	uint64_t data;
	/* requests for memory */
	uint64_t addr;
	uint64_t key;
	/* atomics */
	uint64_t operand; /**< addend, or the new value */
	uint64_t compare;
};

#define OFI_HDR_SHORT offsetof(struct ofi_hdr, addr)
#define OFI_HDR_MSG   offsetof(struct ofi_hdr, key)
#define OFI_HDR_MEM   offsetof(struct ofi_hdr, operand)

/** A part of a message that the receiver reads. */
struct ofi_place {
	uint64_t addr, key, length;
};

#define OFI_EAGER (OFI_BUF_SIZE - sizeof(struct ofi_hdr)) /* longer messages are read */

enum ofi_atomic {
	OFI_FETCH_ADD = 1,
	OFI_CMP_SWAP = 2,
};

static_assert(sizeof(struct ofi_cm_hdr) == 16, "on the wire");
static_assert(sizeof(struct ofi_rdm_req) == OFI_CM_DATA, "on the wire");
static_assert(sizeof(struct ofi_hdr) == 56, "on the wire");
static_assert(sizeof(struct ofi_place) == 24, "on the wire");
