/* SPDX-License-Identifier: Apache-2.0 */
/* Our declarations of the CUDA ABI against those of an installed toolkit: every number and size is
 * equal. */
#include "test.h"

#include "abi/cuda_abi.h"
#include "cuda_toolkit.h"

static const struct abi_number our_numbers[] = {
#include "cuda_toolkit_list.h"
    {0, 0},
};

static void test_equal(void **state)
{
    (void)state;
    size_t n = 0;
    for (; our_numbers[n].name; n++) {
        assert_string_equal(our_numbers[n].name, toolkit_numbers[n].name);
        if (our_numbers[n].value != toolkit_numbers[n].value)
            fail_msg("%s is %lld, in the toolkit %lld", our_numbers[n].name, our_numbers[n].value,
                     toolkit_numbers[n].value);
    }
    assert_null(toolkit_numbers[n].name);
    assert_true(n > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_equal)};
    return test_run("cuda_abi", tests);
}
