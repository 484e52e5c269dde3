/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the calls in routes.c; docs/api.md says what each takes and gives. */
#ifndef REMUDA_SERVER_CALLS_H
#define REMUDA_SERVER_CALLS_H

#include "server/state.h"

call_fn call_status;
call_fn call_submit;
call_fn call_jobs;
call_fn call_job;
call_fn call_update;
call_fn call_cancel;
call_fn call_requeue;
call_fn call_cancel_many;
call_fn call_explain;
call_fn call_nodes;
call_fn call_drain;
call_fn call_undrain;
call_fn call_topology;
call_fn call_queues;
call_fn call_tenants;
call_fn call_get_config;
call_fn call_put_config;
call_fn call_shutdown;

/* True when the object has no other keys than these (NULL ends the list); otherwise answered. */
bool call_check_keys(struct http_request *r, const char *const *known);

#endif
