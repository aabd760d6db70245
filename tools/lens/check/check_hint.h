#pragma once

#include <gradus/diagnosis.h>

#include <string>

namespace lens {

/// What a wrong gradient that no rule explains lacks or has too much of: where each element goes by itself a
/// factor made of the input x and the result y, or what all rows of the right one share. "": nothing fits.
std::string hint_of(const gradus::InputDiagnosis& in, const gradus::Tensor& x, const gradus::Tensor& y);

}  // namespace lens
