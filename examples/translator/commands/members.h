#pragma once

#include <vector>

#include <translator/commands/commands.h>

namespace translator {

/// The trainings that a command asks for with --together, or with --resume of a directory that has members_in:
/// each with a directory of its own in --out, 1 and on, a seed one higher than that of the one before, and an
/// equal part of the threads. None where it asks for a single one.
/// @throws UsageError for fewer threads than models, pairs from standard input and --print-config; InputError
/// where --out holds a model itself, or more of them.
std::vector<TrainCommand> members_of(const TrainCommand& command);

/// Runs each in a process of its own, which share nothing but what they read, and shows how far they are. Where
/// one fails the others stop and save what they have; so do all on a signal.
/// @returns The exit status: in the process of a member its own, in that which was called that of the first
/// that failed, 130 when interrupted.
int train_together(const TrainCommand& command, std::vector<TrainCommand>& members);

}  // namespace translator
