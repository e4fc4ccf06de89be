// copy_arrays.c in C++.
#include <iostream>

#include "hybridnet/cpp/array.h"

using namespace hybridnet::cpp;

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  save_arrays(argv[2], load_arrays(argv[1]));
  return 0;
} catch (const Error& error) {
  std::cerr << error.kind() << ": " << error.what() << "\n";
  return 1;
}
