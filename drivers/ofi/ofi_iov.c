/* SPDX-License-Identifier: BSD-3-Clause */

/* Memory of the program in several pieces. */

#include <string.h>

#include "ofi_priv.h"

size_t
san_ofi_iov_slice(const struct iovec *from, size_t nb_from, size_t offset, size_t length,
		  struct iovec to[OFI_IOV])
{
	size_t i, n, nb = 0;

	for (i = 0; i < nb_from && length != 0; i++) {
		if (offset >= from[i].iov_len) {
			offset -= from[i].iov_len;
			continue;
		}
		n = from[i].iov_len - offset;
		if (n > length)
			n = length;
		to[nb].iov_base = (uint8_t *)from[i].iov_base + offset;
		to[nb++].iov_len = n;
		offset = 0;
		length -= n;
	}
	return nb;
}

void
san_ofi_iov_read(const struct iovec *from, size_t nb_from, size_t offset, void *to, size_t length)
{
	struct iovec iov[OFI_IOV];
	size_t i, nb = san_ofi_iov_slice(from, nb_from, offset, length, iov);
	uint8_t *at = to;

	for (i = 0; i < nb; at += iov[i++].iov_len)
		memcpy(at, iov[i].iov_base, iov[i].iov_len);
}

void
san_ofi_iov_write(const struct iovec *to, size_t nb_to, size_t offset, const void *from,
		  size_t length)
{
	struct iovec iov[OFI_IOV];
	size_t i, nb = san_ofi_iov_slice(to, nb_to, offset, length, iov);
	const uint8_t *at = from;

	for (i = 0; i < nb; at += iov[i++].iov_len)
		memcpy(iov[i].iov_base, at, iov[i].iov_len);
}
