/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the NVML stand-in. It only reads the state file, so that any number of threads may call
 * in; the one thing that changes is the initialisation count, under a lock in nvml_core.c. A device
 * handle is the address of the card in the mapped file, checked on every call: a foreign pointer
 * gives NVML_ERROR_INVALID_ARGUMENT.
 *
 * The mapping stays for the life of the process once made, as handles may be in use in another
 * thread while one calls nvmlShutdown; a later nvmlInit maps anew only when the file at the path is
 * another one.
 */
#ifndef REMUDA_SIMGPU_NVML_IMPL_H
#define REMUDA_SIMGPU_NVML_IMPL_H

#include "abi/nvml_abi.h"
#include "simgpu/state/state.h"

#define EXPORT __attribute__((visibility("default")))

/* The state while initialised, or NULL: the caller answers NVML_ERROR_UNINITIALIZED. */
const struct sim_state *nvml_state(void);
/* The card behind a handle: NVML_SUCCESS with *ret_state and *ret_card, or the error to answer. */
nvmlReturn_t nvml_card(nvmlDevice_t device, const struct sim_state **ret_state, uint32_t *ret_card);
nvmlDevice_t nvml_handle(const struct sim_state *s, uint32_t card);
/* Copies `text` into the caller's buffer by NVML's rules. */
nvmlReturn_t nvml_text(const char *text, char *buffer, unsigned int length);
/* Fills the PCI description of a card. */
void nvml_fill_pci(const struct simgpu_card *c, nvmlPciInfo_t *pci);

/* A getter of one value: checks the handle and the pointer, then gives `c` (the card), `s` and
 * `card`. */
#define CARD_OR_RETURN(device, out)                       \
    const struct sim_state *s;                            \
    uint32_t card;                                        \
    nvmlReturn_t card_rc_ = nvml_card(device, &s, &card); \
    if (card_rc_ != NVML_SUCCESS)                         \
        return card_rc_;                                  \
    if (!(out))                                           \
        return NVML_ERROR_INVALID_ARGUMENT;               \
    const struct simgpu_card *c = sim_card(s, card);      \
    (void)c

#endif
