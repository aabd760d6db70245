#pragma once

#include <gradus/diagnosis.h>

#include <string>

namespace lens {

/// What a wrong gradient that no rule explains lacks or has too much of: a factor made of the input x and the
/// result y, where each element goes by itself, or what every row of the right one has in common. "" when
/// nothing fits.
std::string hint_of(const gradus::InputDiagnosis& in, const gradus::Tensor& x, const gradus::Tensor& y);

}  // namespace lens
