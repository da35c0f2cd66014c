/* SPDX-License-Identifier: BSD-3-Clause */
#include <rtsan_stream.h>
