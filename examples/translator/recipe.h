#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gradus/nn/optimizer.h>

namespace translator {

struct TrainOptions;

std::vector<std::string> optimizer_names();
std::vector<std::string> schedule_names();

/// The optimiser that the options name. @throws gradus::Error for an unknown name.
std::unique_ptr<gradus::nn::Optimizer> make_optimizer(const TrainOptions& options);

/// What --lr is when it is not given: of Adam and its like on the embedded corpus or on sentences of one's
/// own, and of the others.
double default_lr(const std::string& optimizer, bool embedded);

/// The learning rate from its base, the share of the run that is over (by epochs or by time, so that
/// --max-minutes decays too), the steps done, and the length of the warm-up.
///   linear       max(1/20, 1 - progress)
///   cosine       half a cosine down to 0
///   exponential  down to a hundredth
///   step         halved at 4/8, 5/8, 6/8 and 7/8 of the run, as Luong et al. 2015 over ten epochs
///   noam         after the warm-up with the inverse root of the steps (Vaswani et al. 2017); its peak is the
///   base constant, plateau   as they are; a plateau halves the base itself
/// All but noam's are multiplied by the share of the warm-up that is over.
double learning_rate(const std::string& schedule, double base, double progress, int64_t step, int64_t warmup);

/// The options that a run cannot change when it goes on, by the names of the command line.
std::map<std::string, std::string> recipe(const TrainOptions& options);

}  // namespace translator
