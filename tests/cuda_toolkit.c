/* SPDX-License-Identifier: Apache-2.0 */
/* The toolkit's own view of the CUDA ABI, as numbers, for test_cuda_abi.c: the two headers can not
 * be in one file. */
#include <cuda.h>

#include "cuda_toolkit.h"

const struct abi_number toolkit_numbers[] = {
#include "cuda_toolkit_list.h"
    {0, 0},
};
