/* Reads a .params file and writes it again: copy_arrays FROM TO */
#include <stdio.h>

#include "hybridnet/c_api.h"

int main(int argc, char** argv) {
  size_t count = 0;
  HnArray* arrays = NULL;
  const char** names = NULL;
  if (argc != 3) return 2;
  if (hn_arrays_load(argv[1], &count, &arrays, &names) != 0 ||
      hn_arrays_save(argv[2], count, arrays, names) != 0 || hn_arrays_free(count, arrays, names) != 0) {
    fprintf(stderr, "%s: %s\n", hn_last_error_kind(), hn_last_error());
    return 1;
  }
  return 0;
}
