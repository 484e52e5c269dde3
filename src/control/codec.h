/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as bytes, for the store. Little-endian tagged fields, each with its length, so that an older version can
 * be read by a newer one: unknown tags are an error only when their top bit says that they must be understood.
 * Decoding never trusts the bytes: everything is bounded, and a bad record is an error with its position.
 */
#ifndef REMUDA_CONTROL_CODEC_H
#define REMUDA_CONTROL_CODEC_H

#include "base/err.h"
#include "base/strbuf.h"
#include "core/record.h"

/* Appends the encoded record (all but seq, time and kind, which the store keeps as columns). */
void codec_encode(struct strbuf *out, const struct record *r);
/* Fills *ret (owned by the caller, record_done()) with kind, seq and time as given. 0, -EINVAL or -ENOMEM. */
int codec_decode(enum record_kind kind, uint64_t seq, int64_t time_ms, const void *bytes, size_t len,
                 struct record *ret, struct err *e);

#endif
