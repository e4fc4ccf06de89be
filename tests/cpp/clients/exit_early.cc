// Ends the process while products are queued, as the argument says: "return", "exit", "thread" (exit() in another
// thread), or "shutdown" (the same after hybridnet::cpp::shutdown()).
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "hybridnet/cpp/array.h"

using namespace hybridnet::cpp;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string way = argv[1];
  const Array one = invoke("_ones", std::vector<Array>{}, {{"shape", "(500, 500)"}})[0];
  std::vector<Array> products;
  for (int i = 0; i < 40; ++i) products.push_back(invoke("dot", {one, one})[0]);
  std::cout << "queued" << std::endl;
  if (way == "exit") std::exit(0);
  if (way == "thread") std::thread([] { std::exit(0); }).join();
  if (way == "shutdown") {
    shutdown();
    if (products.back().to_vector<float>()[0] != 500) return 3;
    std::thread([] { std::exit(0); }).join();
  }
  return 0;
}
