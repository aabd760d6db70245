#pragma once

#include <string>

#include <translator/commands/commands.h>
#include <translator/model/data.h>
#include <translator/model/model.h>

namespace translator {

// What must hold of a training before it begins. Each throws UsageError that names the option, or InputError
// that names the file.

/// Nothing is given that only the other kind of model has: it would be without effect.
void refuse_options_of_the_other(const TrainCommand& command);
/// Nothing is given that would be without effect beside the other options.
void refuse_what_does_nothing(const TrainCommand& command);
/// What is given goes with what fill_defaults has set.
void must_go_with_defaults(const TrainCommand& command);
/// --guided-alignment has an attention to teach: one set of weights that looks where it chooses.
void must_be_guidable(const TrainCommand& command);
/// Memory for the network and a batch, before any of it is asked for.
void must_fit_this_machine(const ModelConfig& config, const TrainCommand& command, const Data& data);
/// Sentences are as long as the model can take.
void must_be_readable(const Model& model, const Data& data);
/// --resume finds a run in --out; another training neither a model there nor a place that cannot be written.
void must_be_there_or_not(const TrainCommand& command);
/// What is compared with validation pairs has some.
void must_have_validation(const TrainCommand& command, const Data& data);
/// A run that goes on has its own vocabularies: what is wrong with options that would make others; "": nothing.
std::string vocabulary_complaint(const TrainCommand& command, const Data& data, const Model& model);

}  // namespace translator
