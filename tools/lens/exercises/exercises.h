#pragma once

#include <gradus/op_case.h>

#include <string>
#include <vector>

namespace lens {

/// A mistake that people make in an exercise, as a program that makes it.
struct Suspect {
  /// two or three words
  std::string kind;
  /// what to look for
  std::string sentence;
  /// computes the same wrong value, or has the same wrong gradients
  gradus::OpFunction op;
};

/// What a chapter or a lab asks for: the right answer, composed of the engine's ops, and its usual mistakes.
struct Exercise {
  std::string name;
  gradus::OpFunction right;
  std::vector<Suspect> suspects;
  /// what to look at when the value is wrong in a way of its own
  std::string otherwise = {};
};

/// @throws gradus::Error when there is none of that name.
const Exercise& exercise(const std::string& name);

const std::vector<Exercise>& basic_exercises();
const std::vector<Exercise>& sequence_exercises();
const std::vector<Exercise>& attention_exercises();
const std::vector<Exercise>& scaled_dot_exercises();
const std::vector<Exercise>& layer_exercises();

}  // namespace lens
