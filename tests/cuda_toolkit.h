/* SPDX-License-Identifier: Apache-2.0 */
/* A number of the CUDA ABI with its name, see test_cuda_abi.c. */
#ifndef REMUDA_TESTS_CUDA_TOOLKIT_H
#define REMUDA_TESTS_CUDA_TOOLKIT_H

struct abi_number {
    const char *name;
    long long value;
};

extern const struct abi_number toolkit_numbers[]; /* ends with a NULL name */

#endif
