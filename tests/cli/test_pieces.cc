// Sentences of one's own in pieces: whole on the way in and out, told apart from words, resumable, and
// refused where the files do not fit.

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>

#include "../about.h"
#include "../pieces.h"
#include "../same_tensors.h"
#include <common/json_text.h>
#include <common/utf8.h>
#include "program.h"

using namespace cli;
using gradus::testing::no_pieces;

namespace {

const char* const kOwn =
    "Anna doesn't sing.\tAnna ne chante pas.\n"
    "Does Paul sing?\tEst-ce que Paul chante\u202F?\n"
    "Paul sings!\tPaul chante\u202F!\n"
    "Anna sleeps.\tAnna dort.\n"
    "Paul eats apples.\tPaul mange des pommes.\n"
    "The USA sings.\tL\u2019Amérique chante.\n"
    "今天天气很好。\tIl fait beau aujourd'hui \U0001F600.\n"
    "मुझे पानी चाहिए।\tJ'ai besoin d'eau.\n";

Arguments own_run(const std::string& out, const Arguments& more) {
  write_file("own.tsv", kOwn);
  Arguments a = {"train",
                 "--data",
                 "own.tsv",
                 "--out",
                 out,
                 "--hidden",
                 "32",
                 "--embedding",
                 "32",
                 "--threads",
                 "1",
                 "--attention",
                 "bahdanau",
                 "--lr",
                 "0.02",
                 "--batch-size",
                 "4",
                 "--dropout",
                 "0",
                 "--validate-every",
                 "1000",
                 "-q",
                 "--label-smoothing",
                 "0",
                 "--ema",
                 "0",
                 "--no-tie-embeddings",
                 "--recurrent-dropout",
                 "0",
                 "--subword-dropout",
                 "0"};
  return a + more;
}

const std::string& in_pieces() {
  static const std::string name = [] {
    run_well(own_run("in_pieces", {"--epochs", "60"}));
    return std::string("in_pieces");
  }();
  return name;
}

// A copy of the model in which one file is another.
std::string with_file(const std::string& name, const std::string& file, const std::string& bytes) {
  std::filesystem::remove_all(scratch_path() / name);
  std::filesystem::copy(scratch_path() / in_pieces(), scratch_path() / name);
  write_file(name + "/" + file, bytes);
  return name;
}

}  // namespace

TEST_CASE("pieces: capitals, punctuation, other scripts and emoji go in and come out whole") {
  if (no_pieces()) return;
  const std::string model = in_pieces();
  for (const char* file : {"pieces.model", "source.vocab", "target.vocab", "config.json"})
    CHECK_MESSAGE(exists(model + "/" + file), file);
  auto config = json_text::parse(read_file(model + "/config.json"));
  CHECK(config.at("case") == "first");
  CHECK(config.at("subwords") == "bpe");
  Result r =
      run({"translate", model},
          {.input = "Anna doesn't sing.\nDoes Paul sing?\n今天天气很好。\nमुझे पानी चाहिए।\nThe USA sings.\n"});
  CHECK(r.code == 0);
  CHECK(r.err.empty());
  CHECK(r.out ==
        "Anna ne chante pas.\nEst-ce que Paul chante ?\nIl fait beau aujourd'hui \U0001F600.\n"
        "J'ai besoin d'eau.\nL\u2019Amérique chante.\n");
  // What was never seen is spelt in bytes: no word is unknown.
  Result strange = run({"translate", model, "Zork \U0001F996 Ωmega", "--scores"});
  CHECK(strange.code == 0);
  CHECK(strange.err.empty());
  CHECK(count(strange.out, "unknown") == 0);
}

TEST_CASE("pieces: maps, links and JSON are of words; --pieces shows pieces") {
  if (no_pieces()) return;
  const std::string sentence = "Paul eats apples.";
  Result words = run({"translate", in_pieces(), sentence, "--attention-map"});
  CHECK(count(words.out, "╭ apples\n") == 1);
  CHECK(count(words.out, "\u2581") == 0);
  Result pieces = run({"translate", in_pieces(), sentence, "--attention-map", "--pieces"});
  CHECK(count(pieces.out, "\u2581") > 2);
  Result whole = run({"translate", in_pieces(), "Annabel eats", "--attention-map"});
  Result parts = run({"translate", in_pieces(), "Annabel eats", "--attention-map", "--pieces"});
  CHECK(count(whole.out, "╭ Annabel\n") == 1);
  CHECK(count(parts.out, "╭") > count(whole.out, "╭"));
  Result json =
      run({"translate", in_pieces(), sentence, "--json", "--attention-map", "--scores", "--alignments"});
  auto j = json_text::parse(json.out);
  CHECK(j.at("translation") == "Paul mange des pommes.");
  CHECK(j.at("source_words") == std::vector<std::string>{"Paul", "eats", "apples", "."});
  CHECK(j.at("attention").at("source") == std::vector<std::string>{"Paul", "eats", "apples", ".", "</s>"});
  CHECK(j.at("attention").at("target") ==
        std::vector<std::string>{"Paul", "mange", "des", "pommes", ".", "</s>"});
  for (const auto& row : j.at("attention").at("weights")) {
    CHECK(sum_of(row) == about(1, 1e-4));
  }
  CHECK(j.at("log_probability") < 0);
  CHECK(!j.contains("unknown"));
  const auto links = lines_of(run({"translate", in_pieces(), sentence, "--alignments"}).out);
  CHECK(links.at(0) == "Paul mange des pommes.\t" + j.at("alignment").get<std::string>());
}

TEST_CASE("pieces: a mark that is forbidden does not come, however many hypotheses would have it") {
  if (no_pieces()) return;
  for (const Arguments& more : std::vector<Arguments>{{"-k", "1"},
                                                      {"-k", "3"},
                                                      {"-k", "5"},
                                                      {"-k", "5", "--n-best", "5"},
                                                      {"--alternatives", "--n-best", "3"}}) {
    const Result r = run(Arguments{"translate", in_pieces(), "Paul eats apples.", "--forbid", "."} + more);
    INFO(more.back() << ": " << r.out);
    CHECK(r.code == 0);
    CHECK(r.err.empty());
    CHECK(r.out.size() > 3);
    CHECK(r.out.find('.') == std::string::npos);
  }
}

TEST_CASE("pieces: what is required is there where it begins the sentence, with a capital") {
  if (no_pieces()) return;
  for (const char* spelt : {"il fait", "Il fait"}) {
    const Result r = run({"translate", in_pieces(), "今天天气很好。", "--require", spelt, "-k", "6"});
    CHECK(r.out == "Il fait beau aujourd'hui \U0001F600.\n");
    CHECK(r.err.empty());
  }
}

TEST_CASE("pieces: a required word is not the beginning of a longer one") {
  if (no_pieces()) return;
  int whole = 0;
  for (const char* word : {"pau", "chan", "pom", "be", "mang"}) {
    const Result r = run({"translate", in_pieces(), "Paul eats apples.", "--require", word, "-k", "6"});
    INFO(word << ": " << r.out << r.err);
    CHECK(r.code == 0);
    std::string text = " " + r.out.substr(0, r.out.size() - 1) + " ";
    text[1] = static_cast<char>(std::tolower(text[1]));  // as a first word it has a capital
    bool found = false;
    for (const char* after : {" ", ".", "!", ",", "\u202F", "'", "\u2019"})
      found = found || text.find(" " + std::string(word) + after) != std::string::npos;
    CHECK((found || r.says("no translation of so many words has all that --require asks for")));
    whole += found;
  }
  CHECK(whole >= 3);
  const Result others = run({"translate", in_pieces(), "Paul eats apples.", "--require", "mang", "-k", "6",
                             "--alternatives", "--n-best", "2"});
  CHECK(others.code == 0);
  for (const std::string& line : lines_of(others.out))
    CHECK((line.find("mange") == std::string::npos || line.find("mang ") != std::string::npos ||
           others.says("no translation of so many words has all that --require asks for")));
}

TEST_CASE("pieces: evaluate compares with the file as it is") {
  if (no_pieces()) return;
  auto j = json_text::parse(run({"evaluate", in_pieces(), "own.tsv", "--json"}).out);
  CHECK(j.at("bleu").get<double>() == about(100));
  CHECK(j.at("exact_match").get<double>() ==
        about(0.75));  // of two references the space before ! and ? is a narrow one
  CHECK(j.dump().find("case:mixed") != std::string::npos);
}

TEST_CASE("pieces: dropout gives each epoch its own, and a run goes on as if it had not stopped") {
  if (no_pieces()) return;
  const Arguments kept = {"--subword-dropout", "0.3", "--schedule", "constant", "--warmup", "3"};
  auto trained = [&](const std::string& out, const Arguments& more) {
    run_well(own_run(out, kept + more));
  };
  trained("dropped", {"--epochs", "6"});
  trained("stopped_in_pieces", {"--epochs", "3"});
  trained("stopped_in_pieces", {"--epochs", "6", "--resume"});
  check_same_tensors(in_scratch("dropped/last.safetensors"), in_scratch("stopped_in_pieces/last.safetensors"));
  trained("undropped", {"--epochs", "6", "--subword-dropout", "0"});
  CHECK(read_file("undropped/model.safetensors") != read_file("dropped/model.safetensors"));
  Result other = run(own_run("dropped", {"--epochs", "6", "--resume", "--subword-dropout", "0.2",
                                         "--schedule", "constant", "--warmup", "3"}));
  CHECK(other.code == 2);
  CAPTURE(other.err);
  CHECK(other.says("began with --subword-dropout 0.3, not 0.2: --resume cannot change it"));
}

TEST_CASE("pieces: a run that goes on keeps its shortlist, or learns the one it would have begun with") {
  if (no_pieces()) return;
  auto trained = [&](const std::string& out, const Arguments& more) {
    Arguments a = {"train", "--data", short_pairs(), "--hidden", "8", "--threads", "1", "-q", "--out", out,
                   "--subword-size", "400", "--subword-dropout", "0.5", "--batch-tokens", "2000"};
    run_well(a + more);
  };
  const std::string list = "/shortlist.safetensors";
  trained("listed_pieces", {"--epochs", "1", "--shortlist"});
  const std::string first = read_file("listed_pieces" + list);
  trained("listed_pieces", {"--epochs", "2", "--resume"});
  CHECK(read_file("listed_pieces" + list) == first);
  trained("late_pieces", {"--epochs", "1"});
  CHECK(!exists("late_pieces" + list));
  trained("late_pieces", {"--epochs", "2", "--resume", "--shortlist"});
  CHECK(read_file("late_pieces" + list) == first);
}

TEST_CASE("pieces: one model for both sides, unigrams, characters, a folded first word") {
  if (no_pieces()) return;
  struct {
    Arguments options;
    std::vector<const char*> files, missing;
  } const kinds[] = {
      {{"--subword-model", "separate", "--epochs", "150"},
       {"source.model", "target.model"},
       {"pieces.model"}},
      {{"--subwords", "unigram", "--epochs", "300"}, {"pieces.model"}, {"source.model"}},
      {{"--subwords", "char", "--epochs", "600", "--tie-embeddings"}, {"pieces.model"}, {"source.model"}},
      {{"--case", "keep", "--epochs", "150"}, {}, {"source.truecase", "target.truecase"}},
      {{"--subwords", "none", "--min-count", "1", "--case", "first", "--epochs", "150"},
       {"source.truecase"},
       {"pieces.model"}}};
  int number = 0;
  for (const auto& kind : kinds) {
    const std::string out = "kind" + std::to_string(number++);
    CAPTURE(out);
    run_well(own_run(out, kind.options));
    for (const char* file : kind.files) CHECK_MESSAGE(exists(out + "/" + file), file);
    for (const char* file : kind.missing) CHECK_MESSAGE(!exists(out + "/" + file), file);
    CHECK(run({"translate", out, "Paul eats apples."}).out == "Paul mange des pommes.\n");
  }
}

TEST_CASE("pieces: a damaged or foreign model of pieces, or one of other words, is refused by name") {
  if (no_pieces()) return;
  auto fault = [](const std::string& model) {
    Result r = run({"translate", model, "Anna"});
    CHECK(r.code == 1);
    CHECK(r.out.empty());
    return r.err;
  };
  CHECK(fault(with_file("damaged", "pieces.model", "no model")) ==
        "translator: damaged/pieces.model: is no SentencePiece model, or damaged\n");
  REQUIRE(run(own_run("apart", {"--epochs", "1", "--subword-model", "separate"})).code == 0);
  CHECK(fault(with_file("mixed", "pieces.model", read_file("apart/source.model"))) ==
        "translator: mixed/pieces.model: has other pieces than source.vocab: they do not belong together\n");
  // SentencePiece reads most files with a changed bit without a word; some then split otherwise.
  const std::string pieces = read_file(in_pieces() + "/pieces.model");
  int unseen_by_the_library = 0;
  for (size_t at = 0, step = pieces.size() / 31; at < pieces.size(); at += step) {
    std::string changed = pieces;
    changed[at] = static_cast<char>(changed[at] ^ (1 << (at / step % 8)));
    CAPTURE(at);
    const std::string said = fault(with_file("changed", "pieces.model", changed));
    CAPTURE(said);
    CHECK(said.starts_with("translator: changed/pieces.model:"));
    if (said.find("is not the file that the model was trained with: damaged, or of another model (its "
                  "checksum is ") != std::string::npos)
      ++unseen_by_the_library;
  }
  CHECK(unseen_by_the_library > 0);
  // A model directory of before the checksum stood in it is read as it was.
  std::string before = read_file(in_pieces() + "/config.json");
  for (const char* side : {"source", "target"}) {
    const size_t from = before.find(fmt::format("  \"{}_pieces\"", side));
    REQUIRE(from != std::string::npos);
    before.erase(from, before.find('\n', from) + 1 - from);
  }
  CHECK(run({"translate", with_file("before_checksums", "config.json", before), "Anna"}).code == 0);
  // A list of words that is cut off would fold others, and a directory none.
  const std::string folded = read_file(in_pieces() + "/source.truecase");
  REQUIRE(!folded.empty());
  CHECK(fault(with_file("cut", "source.truecase", folded.substr(0, folded.size() - 1)))
            .ends_with("the file is cut off: its last line does not end\n"));
  std::filesystem::remove(scratch_path() / "cut/source.truecase");
  std::filesystem::create_directory(scratch_path() / "cut/source.truecase");
  CHECK(fault("cut") == "translator: cut/source.truecase: cannot be read: is it a directory?\n");
  with_file("gone", "config.json", read_file(in_pieces() + "/config.json"));
  std::filesystem::remove(scratch_path() / "gone/pieces.model");
  CHECK(fault("gone") == "translator: gone/pieces.model: cannot be opened: No such file or directory\n");
  std::string config = read_file(in_pieces() + "/config.json");
  config.replace(config.find("\"bpe\""), 5, "\"zip\"");
  CHECK(
      fault(with_file("zipped", "config.json", config)) ==
      "translator: zipped/config.json: is of a model whose \"subwords\" is zip, which this program does not "
      "know\n");
}

TEST_CASE("pieces: bad lines in a stream cost no other line its translation") {
  if (no_pieces()) return;
  const std::string input = "Anna sleeps.\nbro\xFFken\n" + std::string((1 << 20) + 1, 'a') + "\n" +
                            std::string(1 << 19, 'b') + "\n\nAnna sleeps.";
  Result r = run({"translate", in_pieces()}, {.input = input});
  CHECK(r.code == 1);
  CHECK(r.out == "Anna dort.\n\n\n\n\nAnna dort.\n");
  CHECK(r.says("standard input:2: byte 4 (0xff) is not valid UTF-8; an empty line stands for it\n"));
  CHECK(r.says("standard input:3: has more than 1048576 bytes; an empty line stands for it\n"));
  CHECK(r.says("standard input:4: has "));
  CHECK(r.says(" pieces; 5000 at most are taken; an empty line stands for it\n"));
}

TEST_CASE("pieces: options of words among those of pieces, and the other way round, are wrong usage") {
  if (no_pieces()) return;
  auto fault = [](const Arguments& more) {
    Result r = run(own_run("refused", more));
    CHECK(r.code == 2);
    CHECK_FALSE(exists("refused"));
    return r.err;
  };
  CHECK(
      fault({"--min-count", "2"}) ==
      "translator: --min-count is for words: with pieces nothing is unknown; --subwords none makes words the "
      "tokens\n");
  CHECK(fault({"--subwords", "none", "--subword-size", "400"}) ==
        "translator: --subword-size is for pieces, but words are the tokens here\n");
  CHECK(
      fault({"--subwords", "char", "--subword-dropout", "0.1"}) ==
      "translator: --subword-dropout has nothing to choose from: a text has its characters in one way only\n");
}

TEST_CASE(
    "words: unknown ones are named once a sentence, marked beside the score and in JSON, copied as they are") {
  const std::string model = trained_model();
  Result r = run({"translate", model, "Zork sees the Zork", "--scores"});
  CHECK(r.err == "translator: unknown: Zork\n");
  CHECK(r.out.find("\tunknown: Zork\n") != std::string::npos);
  Result lines = run({"translate", model}, {.input = "the cat sleeps\nthe Zork and the Blah sleep\n"});
  CHECK(lines.err == "translator: standard input:2: unknown: Zork, Blah\n");
  CHECK(count(lines.out, "unknown") == 0);
  auto j = json_text::parse(run({"translate", model, "the Zork", "--json"}).out);
  CHECK(j.at("unknown") == std::vector<std::string>{"Zork"});
  CHECK(count(lines.out + run({"translate", model, "the Zork sleeps"}).out, "zork") == 0);
}

TEST_CASE("pieces: what is forbidden does not begin a sentence with a capital either") {
  if (no_pieces()) return;
  run_well(own_run("kept_capitals", {"--epochs", "60", "--case", "keep"}));
  const Result free = run({"translate", "kept_capitals", "今天天气很好。"}),
               told = run({"translate", "kept_capitals", "今天天气很好。", "--forbid", "il"});
  CHECK(free.out.starts_with("Il "));
  CHECK(told.out.find("Il ") == std::string::npos);
}

TEST_CASE("pieces: what a translation begins with is no required word where that goes on in it") {
  if (no_pieces()) return;
  CHECK(run({"translate", in_pieces(), "Paul eats apples.", "--prefix", "Paul mangx", "--require", "mang"})
            .says("no translation of so many words has all that --require asks for"));
}

TEST_CASE("pieces: a text of more than 200 characters gets two more for each") {
  if (no_pieces()) return;
  std::string pairs;
  for (char32_t c = 0x4E00; c < 0x4E00 + 260; ++c) pairs += translator::utf8::encode({&c, 1}) + "\ta\n";
  write_file("of-many-characters.tsv", pairs);
  const Result r = run_well({"train", "--data", "of-many-characters.tsv", "--hidden", "8", "--embedding", "8",
                             "--epochs", "1", "--threads", "1", "--out", "of-many-characters"});
  int characters = 0, pieces = 0;
  const size_t at = r.err.find("The text has ");
  REQUIRE(at != std::string::npos);
  REQUIRE(std::sscanf(r.err.c_str() + at, "The text has %d characters: %d", &characters, &pieces) == 2);
  CHECK(characters > 200);
  CHECK(pieces == 2000 + 2 * (characters - 200));
}
