/* Joins a group without a launcher: join_group RANK SIZE MEETING TOKEN_FILE NAME. Prints what the calls give. */
#include <stdio.h>
#include <stdlib.h>

#include "hybridnet/c_api.h"

static void check(int status) {
  if (status == 0) return;
  printf("%s: %s\n", hn_last_error_kind(), hn_last_error());
  exit(7);
}

static void print(const char* text, HnArray array) {
  float values[4] = {0};
  int64_t size = 0;
  check(hn_array_size(array, &size));
  check(hn_array_copy_to(array, values, (size_t)size * sizeof(float)));
  printf("%s", text);
  for (int64_t i = 0; i < size; ++i) printf(" %g", (double)values[i]);
  printf("\n");
  check(hn_array_free(array));
}

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const HnGroupSettings settings = {sizeof settings, atoi(argv[1]), atoi(argv[2]), 4,       argv[3],
                                    argv[4],         NULL,          NULL,          argv[5], 20};
  int joined = 0, rank = 0, size = 0, shards = 0, first = 0, end = 0;
  check(hn_group_is_joined(&joined));
  if (joined) return 3;
  check(hn_group_join(&settings));
  check(hn_group_rank(&rank));
  check(hn_group_size(&size));
  check(hn_group_virtual_shards(&shards));
  check(hn_group_own_shards(&first, &end));
  printf("place %d of %d, shards %d to %d of %d\n", rank, size, first, end, shards);

  const int64_t shape[] = {2};
  const float values[] = {(float)(rank + 1), 10};
  HnArray x = NULL, sum = NULL, all = NULL;
  check(hn_array_create(shape, 1, HN_FLOAT32, values, &x));
  check(hn_group_sum(x, "x", &sum));
  print("sum", sum);
  check(hn_group_gather(x, "x", &all));
  print("all", all);
  check(hn_group_broadcast(1, &x, 1, "x"));
  check(hn_group_sum_into(1, &x, NULL, "x", 0));
  print("sum of the values of process 1", x);
  check(hn_group_barrier());
  int64_t calls = 0, bytes = 0;
  check(hn_group_counters(&calls, &bytes));
  printf("calls %d\n", (int)calls);
  if (hn_group_join(&settings) == 0) return 4;
  printf("%s\n", hn_last_error_kind());
  check(hn_group_leave("its work is done"));
  if (hn_group_barrier() == 0) return 5;
  printf("%s\n", hn_last_error_kind());
  return 0;
}
