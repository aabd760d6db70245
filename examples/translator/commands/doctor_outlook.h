#pragma once

#include <functional>
#include <string>
#include <vector>

#include <translator/commands/commands.h>

namespace translator::doctor {

/// What training on the data will be like.
struct Outlook {
  /// Words left out for being seen less often than this, on both sides.
  struct MinCount {
    int64_t least = 1;
    /// distinct words that stay
    int64_t source_words = 0, target_words = 0;
    /// share of running words that become <unk>
    double source_unknown = 0, target_unknown = 0;
  };
  /// How long sentences are in pieces.
  struct PieceSize {
    /// of each side
    int64_t size;
    /// a sentence, mean
    double source_pieces, target_pieces;
  };
  std::vector<MinCount> min_counts = {};
  /// empty in a build without pieces
  std::vector<PieceSize> piece_sizes = {};

  // Of the model that `train` makes if it is told nothing else:
  /// its tokens; else words
  bool pieces = true;
  int64_t source_vocabulary = 0, target_vocabulary = 0, parameters = 0, epochs = 0;
  int threads = 1;
  // Measured by training it here; 0 where that was not asked for.
  double measured_seconds = 0, tokens_per_second = 0, minutes = 0, bytes = 0;
};

/// @param command With its defaults filled in, and `text` learnt as it says. Other sizes of pieces are learnt
///   from a sample of the data.
/// @param seconds Of training to measure; 0: none.
Outlook look_ahead(TrainCommand command, const Data& data, const LearntText& text, double seconds,
                   const std::function<void(const std::string& stage)>& on_stage);

}  // namespace translator::doctor
