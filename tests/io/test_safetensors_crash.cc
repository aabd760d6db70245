#include <csignal>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <gradus/io/safetensors.h>

#include "../quick_doctest.h"
#include "scratch.h"

using namespace gradus;

namespace {

// Version k: a thousand numbers k, and k in the metadata.
SafetensorsFile version(int k) {
  return {{{"w", Tensor::full({1000}, k)}, {"ids", Tensor::full({k % 50}, k, DType::i32)}},
          {{"version", std::to_string(k)}}};
}

}  // namespace

TEST_CASE("a writer killed at any moment leaves a whole file") {
  scratch::Directory dir;
  std::string path = dir.file("model.safetensors");
  save_safetensors(path, version(0));
  int newest = 0;
  auto version_there = [&] { return std::stoi(load_safetensors(path).metadata.at("version")); };
  for (int round = 0; round < 24; ++round) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int k = newest + 1;; ++k) save_safetensors(path, version(k));
    }
    // Now and then let it finish one, however slow the disk; readers see whole files meanwhile.
    for (int wait = 0; round % 6 == 0 && wait < 10000 && version_there() == newest; ++wait) usleep(1000);
    usleep(static_cast<useconds_t>(round * 997 % 9000));
    kill(child, SIGKILL);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));  // it was still writing: nothing failed there

    SafetensorsFile file = load_safetensors(path);
    int k = std::stoi(file.metadata.at("version"));
    CHECK(k >= newest);
    newest = k;
    REQUIRE(file.tensors.size() == 2);
    CHECK(file.tensors[0].second.to_vector() == std::vector<double>(1000, k));
    CHECK(file.tensors[1].second.to_vector() == std::vector<double>(static_cast<size_t>(k % 50), k));
  }
  CHECK(newest > 0);
}

TEST_CASE("two writers of one file take turns") {
  scratch::Directory dir;
  std::string path = dir.file("model.safetensors");
  pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (int k = 0; k < 30; ++k) save_safetensors(path, version(k));
    _exit(0);
  }
  for (int k = 100; k < 130; ++k) {
    save_safetensors(path, version(k));
    SafetensorsFile file = load_safetensors(path);
    int found = std::stoi(file.metadata.at("version"));
    CHECK(file.tensors[0].second.to_vector() == std::vector<double>(1000, found));
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}
