#pragma once

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>

namespace fuzzing {

/// What a program prints by C and C++ streams, while it lives; a sanitizer's report still goes where it
/// should.
class Caught {
 public:
  Caught()
      : old_out_(stdout),
        old_err_(stderr),
        old_cout_(std::cout.rdbuf(cout_.rdbuf())),
        old_cerr_(std::cerr.rdbuf(cerr_.rdbuf())) {
    stdout = open_memstream(&out_.text, &out_.size);
    stderr = open_memstream(&err_.text, &err_.size);
  }
  ~Caught() {
    std::fclose(stdout);
    std::fclose(stderr);
    stdout = old_out_;
    stderr = old_err_;
    std::cout.rdbuf(old_cout_);
    std::cerr.rdbuf(old_cerr_);
    std::free(out_.text);
    std::free(err_.text);
  }
  Caught(const Caught&) = delete;

  std::string out() { return out_.flushed(stdout) + cout_.str(); }
  std::string err() { return err_.flushed(stderr) + cerr_.str(); }

 private:
  struct Text {
    char* text = nullptr;
    size_t size = 0;
    std::string flushed(FILE* stream) {
      std::fflush(stream);
      return {text, size};
    }
  };

  Text out_, err_;
  std::ostringstream cout_, cerr_;
  FILE *old_out_, *old_err_;
  std::streambuf *old_cout_, *old_cerr_;
};

}  // namespace fuzzing
