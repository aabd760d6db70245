#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <gradus/parallel.h>
#include <gradus/tensor.h>

namespace gradus::nn {

/// The ids that every vocabulary begins with: <unk> <pad> <s> </s>.
enum SpecialId : int32_t { kUnk = 0, kPad = 1, kBos = 2, kEos = 3 };

/// A batch of sentences on its way, one target word at a time. It holds rows: hypotheses, each of one sentence.
/// At first row b is sentence b; `select` drops rows, and doubles them for a beam. Nothing is recorded.
class IncrementalDecoder {
 public:
  virtual ~IncrementalDecoder() = default;
  /// previous i32 [R], the last word of each row -> logits f32 [R, V] of the next one, valid until the next
  /// call. @throws Error for ids that are not i32 [R], or not in the vocabulary.
  virtual const Tensor& step(const Tensor& previous) = 0;
  /// The same step for a caller that asks for no more than the most probable word of each row: best i32 [R] is
  /// written, and may be `previous` itself. Of equal ones it is the first; words of `never` are passed over,
  /// -1: no other is left.
  virtual void step_best(const Tensor& previous, const std::vector<int32_t>& never, const Tensor& best);
  /// The same step for a caller that has an output layer of its own, say some rows of the model's: what that
  /// layer reads, f32 [R, H], valid until the next call. @throws Error where several models are one.
  virtual Tensor readouts(const Tensor& previous);
  /// Alignment weights f32 [R, S] of the last step, valid until the next call; undefined if there are none.
  virtual const Tensor& weights() const = 0;
  /// Row i of the steps to come continues row rows[i] of the last one; a row that is not named is dropped. Rows
  /// of one sentence stay within the `rows_per_sentence` it was started with.
  /// @throws Error when a row does not exist or there are too many.
  virtual void select(const std::vector<int64_t>& rows) = 0;
  /// Whether further sentences may join.
  virtual bool can_join() const { return false; }
  /// The rows of a decoder that the same generator has just started, with the same options, stand behind those
  /// here, as if they had been there from the start. What was kept for sentences that no row continues is given
  /// back.
  /// @throws Error when there are more rows than were planned for, and where none may join.
  virtual void join(const IncrementalDecoder& started);
};

struct IncrementalOptions {
  /// At most: the beam's width
  int64_t rows_per_sentence = 1;
  /// false: weights() will not be asked for
  bool weights = true;
  /// Rows of the whole search, where this is a thread's share: all shares round alike. 0: of these alone.
  int64_t search_rows = 0;
  /// Threads a step may use, when its caller is not itself a job of that pool
  ThreadPool* pool = nullptr;
  /// Of each sentence, source positions that are read, but that no step looks at; empty: none. Such a search
  /// takes the plain way, not the packed one.
  std::vector<std::vector<int32_t>> hidden = {};
};

/// For implementations of `start`: u8 [B, S], 1 where a step may look, by lengths i32 [B] and what is hidden.
/// @throws Error "[start] hidden positions are 0 .. 4: 7", and unless `hidden` has B lists, or none.
Tensor visible(const Tensor& lengths, int64_t S, const std::vector<std::vector<int32_t>>& hidden);

using StartDecoding = std::function<std::unique_ptr<IncrementalDecoder>(
    const Tensor& source, const Tensor& lengths, const IncrementalOptions& options)>;

/// A model made ready for decoding: what depends on the weights alone is done once (they are laid out anew for
/// the products of a step), for as many batches as there are. Threads may share it. The model must outlive it,
/// unchanged.
class Generator {
 public:
  /// One that starts so; what it keeps is what the function holds.
  explicit Generator(StartDecoding start) : start_(std::move(start)) {}
  /// Reads the sources, ids i32 [S, B], lengths i32 [B]. @throws Error for ids and lengths that do not fit.
  std::unique_ptr<IncrementalDecoder> start(const Tensor& source, const Tensor& lengths,
                                            const IncrementalOptions& options = {}) const {
    return start_(source, lengths, options);
  }

 private:
  StartDecoding start_;
};

struct GeneratorOptions {
  /// Products with weights rounded to 8 bits (kernels::Int8Matrix), where decoding is packed.
  bool int8 = false;
};

/// What search needs of a model: any model that turns a source into words one by one can be translated with.
class Generative {
 public:
  virtual ~Generative() = default;
  virtual std::unique_ptr<Generator> generator(const GeneratorOptions& options = {}) const = 0;
};

/// For implementations of `select`: rows as the index i32 [N] that tensors take them by.
Tensor index_of(const std::vector<int64_t>& rows);

/// Likewise: the sentence that each row continues. It allocates when it is made, and not again.
class RowSentences {
 public:
  RowSentences(int64_t sentences, int64_t rows_per_sentence);
  /// Takes a selection. What it changed: nothing; places of rows within their sentences (a beam); the sentences
  /// of rows, and with them what each row needs of its source.
  /// @throws Error "[select] rows are 0 .. 2: 3", "[select] at most 6 rows were planned for: 7".
  enum class Change { none, rows, sources };
  Change select(const std::vector<int64_t>& rows);
  /// What is kept of each sentence joins `own`, whose rest is that of sentences that rows continue still: all
  /// are numbered anew. Each of those that join gets a row behind the others. @throws Error when there are too
  /// many.
  template <class Kept>
  void join(std::vector<Kept>& own, const std::vector<Kept>& further) {
    std::vector<Kept> all;
    for (size_t b : renumbered(further.size())) all.push_back(own[b]);
    all.insert(all.end(), further.begin(), further.end());
    own = std::move(all);
  }
  const std::vector<int64_t>& of_rows() const { return sentence_; }

 private:
  std::vector<size_t> renumbered(size_t further);

  std::vector<int64_t> sentence_, chosen_;  // of the rows; those before
  int64_t most_;
};

}  // namespace gradus::nn
