// The fuzz target without libFuzzer: the inputs of a file, one per line in hexadecimal digits, then
// random ones. The digest that it prints at the end is the same on every processor.
//
//     replay FILE INPUTS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "cases.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: replay FILE INPUTS\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  int64_t lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    std::vector<uint8_t> bytes;
    for (size_t i = 0; i + 1 < line.size(); i += 2)
      bytes.push_back(static_cast<uint8_t>(std::stoi(line.substr(i, 2), nullptr, 16)));
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  if (lines == 0) {
    std::fprintf(stderr, "replay: no inputs in %s\n", argv[1]);
    return 1;
  }
  poolgrad::fuzz::Noise noise(23);
  for (int64_t k = std::atoll(argv[2]); k > 0; --k) {
    uint8_t bytes[64];
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(noise.next() >> 56);
    LLVMFuzzerTestOneInput(bytes, 32 + noise.next() % 33);
  }
  return 0;
}
