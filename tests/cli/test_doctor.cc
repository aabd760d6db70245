// `translator doctor`, and what `train` says of bad data.

#include <random>

#include <fmt/format.h>

#include "../quick_doctest.h"
#include <common/json_text.h>
#include "program.h"

using namespace cli;

namespace {

// Sentences of the grammar with five lines that are none, all that the tests need of training left out.
const std::string& harmed() {
  static const std::string name = [] {
    REQUIRE(run({"corpus", "-n", "2000", "-o", "sound.tsv"}).code == 0);
    auto lines = lines_of(read_file("sound.tsv"));
    lines[9] = lines[0];
    lines[19] = "no tab";
    lines[29] = lines[29].substr(0, lines[29].find('\t') + 1);
    lines[39] = "She sings <b>now</b>\tElle chante maintenant\tmore";
    lines[49] = "He is 31\tIl a 13 ans";
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    write_file("harmed.tsv", text);
    return std::string("harmed.tsv");
  }();
  return name;
}

Arguments quick(const Arguments& more) { return Arguments{"doctor", "--seconds", "0"} + more; }

}  // namespace

TEST_CASE("doctor: text, exit status, and JSON with all lines") {
  Result r = run(quick({harmed()}));
  CHECK(r.code == 1);
  CHECK(r.err == "");
  CHECK(r.out.starts_with("harmed.tsv: 1998 pairs in 2000 lines\n"));
  CHECK(count(r.out, "Worth leaving out: 5 of 2000 lines\n") == 1);
  CHECK(count(r.out, "    line 20: no tab between source and target\n") == 1);
  CHECK(count(r.out, "    line 30: the target side is empty\n") == 1);
  CHECK(count(r.out, "    line 10, the same as line 1: ") == 1);
  CHECK(count(r.out, "    line 40, <b> in the source only: She sings <b>now</b> | Elle c") == 1);
  CHECK(count(r.out, "    line 50, 31 against 13: He is 31 | Il a 13 ans\n") == 1);
  CHECK(count(r.out, "Training, as train does it if told nothing else\n") == 1);
  CHECK(count(r.out, " epochs: ") == 0);
  for (const std::string& line : lines_of(r.out))
    CHECK(line.size() <= 100);  // 80 columns, some in more bytes

  Result json = run(quick({harmed(), "--json"}));
  CHECK(json.code == 1);
  const auto j = json_text::parse(json.out);
  CHECK(j.at("lines") == 2000);
  CHECK(j.at("left_out") == 5);
  CHECK(j.at("judged_by_words") == true);
  CHECK(j.at("findings").at(0).at("kind") == "unreadable");
  CHECK(json_text::dump(j.at("findings").at(0).at("lines")) == "[20,30]");
  CHECK(j.at("training").at("parameters") > 100000);
  CHECK(j.at("training").at("min_counts").at(0).at("source_unknown") == 0);
  // From standard input, and with another number of threads.
  const auto same =
      json_text::parse(run(quick({"-", "--json", "--threads", "1"}), {.input = read_file(harmed())}).out);
  CHECK(same.at("file") == "standard input");
  CHECK(same.at("findings") == j.at("findings"));
}

TEST_CASE("doctor: counts the words that train keeps, as they are spelt") {
  std::string pairs, valid;
  for (int i = 0; i < 240; ++i) {
    const std::string name = fmt::format("N{}o{}", char('a' + i % 24), char('a' + i / 24));
    const char* flower = i % 3 ? "rose" : "Rose";
    pairs += i % 2 ? fmt::format("The cat sees {} {}.\tLe chat voit {} {} !\n", name, flower, flower, name)
                   : fmt::format("{} sees the {}.\t{} voit la « {} ».\n", name, flower, name, flower);
    if (i % 20 == 0) valid += fmt::format("The {} sees {}.\tLa {} voit {} !\n", flower, name, flower, name);
  }
  write_file("spelt.tsv", pairs);
  write_file("spelt-valid.tsv", valid);
  const auto counts = json_text::parse(run(quick({"spelt.tsv", "--valid", "spelt-valid.tsv", "--json"})).out)
                          .at("training").at("min_counts").at(0);
  REQUIRE(run({"train", "--data", "spelt.tsv", "--valid", "spelt-valid.tsv", "--subwords", "none",
               "--min-count", "1", "--hidden", "8", "--epochs", "1", "--out", "spelt", "-q"})
              .code == 0);
  auto words = [](const std::string& file) { return count(read_file("spelt/" + file), "\n") - 4; };  // specials
  CHECK(counts.at("source_words") == words("source.vocab"));
  CHECK(counts.at("target_words") == words("target.vocab"));
}

TEST_CASE("doctor: sound pairs end with 0, and training is measured") {
  REQUIRE(exists(harmed()));
  Result r = run({"doctor", "sound.tsv", "--seconds", "0.2", "--threads", "1"});
  CHECK(r.code == 0);
  CHECK(count(r.out, "Nothing that should be left out.\n") == 1);
  CHECK(count(r.out, "  80 epochs: about ") == 1);
  CHECK(count(r.out, "with 1 thread (") == 1);
}

TEST_CASE("doctor: sides that do not go together end with 1, though no line is worth leaving out") {
  std::mt19937 random(1);
  auto words = [&](const char* first, const char* second) {  // four, of two syllables each
    std::string out;
    for (int k = 0; k < 4; ++k) {
      out += (k > 0 ? " " : "") + std::string(first + 2 * (random() % 6), 2);
      out += std::string(second + 2 * (random() % 4), 2);
    }
    return out;
  };
  std::string pairs;
  for (int i = 0; i < 1000; ++i)
    pairs += words("bakelimonuso", "tarevino") + "\t" + words("zewixajofyqu", "pughaecu") + "\n";
  write_file("apart.tsv", pairs);
  const Result r = run(quick({"apart.tsv", "--json"}));
  CHECK(r.code == 1);
  CHECK(json_text::parse(r.out).at("left_out") == 0);
}

TEST_CASE("doctor: a handful of good pairs tells no language from another; it foretells what train makes") {
  write_file("three.tsv",
             "Tom waited, but nobody came.\tTom a attendu, mais personne n'est venu.\n"
             "Living in a large city has many advantages.\tVivre dans une grande ville a de nombreux "
             "avantages.\nShe handed him the money that she owed him.\tElle lui tendit l'argent qu'elle lui "
             "devait.\n");
  Result r = run(quick({"three.tsv"}));
  CHECK(r.code == 0);
  CHECK(count(r.out, "Nothing that should be left out.\n") == 1);
  // Train holds 250 of these out, which count: fewer than 5,000 had 80.
  REQUIRE(run({"corpus", "-n", "5000", "-o", "near.tsv"}).code == 0);
  const Result near = run({"doctor", "near.tsv", "--seconds", "0.1", "--threads", "1"});
  CHECK(count(near.out, "  30 epochs: about ") == 1);
}

TEST_CASE("doctor --clean: what is kept, what is not, and nothing over what is read") {
  Result r = run(quick({harmed(), "--clean", "clean.tsv"}));
  CHECK(r.code == 1);
  const auto before = lines_of(read_file(harmed())), kept = lines_of(read_file("clean.tsv")),
             rejected = lines_of(read_file("clean.tsv.rejected"));
  REQUIRE(kept.size() == 1995);
  CHECK(kept[0] == before[0]);
  CHECK(kept[9] == before[10]);
  CHECK(kept.back() == before.back());
  REQUIRE(rejected.size() == 5);
  CHECK(rejected[0] == "10\tduplicate: the same as line 1\t" + before[9]);
  CHECK(rejected[1] == "20\tunreadable: no tab between source and target\tno tab");
  CHECK(rejected[3] ==
        "40\tmarkup: <b> in the source only\tShe sings <b>now</b>\tElle chante maintenant\tmore");
  CHECK(run(quick({"clean.tsv"})).code == 0);
  for (const char* out : {"harmed.tsv", "./harmed.tsv"}) {
    check_refused(quick({harmed(), "--clean", out}), 2,
                  "--clean: " + std::string(out) + " is what is read: name another file");
  }
  CHECK(run(quick({harmed(), "--clean", "-"})).code == 2);
  CHECK(!exists("-"));
  write_file("x.rejected", "kept");
  CHECK(run(quick({"x.rejected", "--clean", "x"})).code == 2);
  CHECK(read_file("x.rejected") == "kept");
  Result nowhere = run(quick({harmed(), "--clean", "not/there.tsv"}));
  CHECK(nowhere.code == 1);
  CHECK(nowhere.out == "");
  CHECK(nowhere.says("not/there.tsv.rejected: cannot be written: "));
}

TEST_CASE("doctor: two files, swapped columns, held-out pairs, a model") {
  write_file("d.en", "she sings\nhe eats an apple\nfour\n");
  write_file("d.fr", "elle chante\nil mange une pomme\n\n");
  Result two = run(quick({"--source", "d.en", "--target", "d.fr", "--clean", "d.tsv"}));
  CHECK(two.code == 1);
  CHECK(two.out.starts_with("d.en, d.fr: 2 pairs in 3 lines\n"));
  CHECK(read_file("d.tsv") == "she sings\telle chante\nhe eats an apple\til mange une pomme\n");
  Result swapped = run(quick({"d.tsv", "--swap", "--json", "--test", "d.tsv"}));
  const auto j = json_text::parse(swapped.out);
  CHECK(j.at("findings").at(0).at("kind") == "overlap");
  CHECK(j.at("findings").at(0).at("details").at(1) == "the sides are those of line 2 of d.tsv");
  const auto model = json_text::parse(run(quick({"d.tsv", "--json", "--model", trained_model()})).out);
  REQUIRE(model.at("least_believed").size() == 2);
  CHECK(model.at("least_believed").at(0).at("perplexity") >
        model.at("least_believed").at(1).at("perplexity"));
}

TEST_CASE("doctor: what train leaves out as too long is told, and all else goes on") {
  const std::string sound = "she sings\telle chante\nhe eats an apple\til mange une pomme\n";
  std::string words, numbers;
  for (int i = 0; i < 20000; ++i) words += "cat ", numbers += "1 ";
  for (const std::string& line :
       {std::string(66000, 'a') + "\tb", words + "\tchat", numbers + "\t" + words + "2"}) {
    write_file("long.tsv", sound + line + "\n");
    const Result r = run(quick({"long.tsv", "--json"}));
    CAPTURE(r.err);
    REQUIRE(r.code == 1);
    const auto j = json_text::parse(r.out);
    bool told = false;
    for (const auto& f : j.at("findings"))
      told = told || (f.at("kind") == "too-long" && f.at("lines").at(0) == 3);
    CHECK(told);
  }
  write_file("all-long.tsv", words + "\tchat\n");
  CHECK(run(quick({"all-long.tsv"})).says("all-long.tsv: has no pair within --max-length 50\n"));
}

TEST_CASE("doctor: a word longer than SentencePiece takes teaches no pieces, and the limit is told") {
  write_file("long-word.tsv", "she sings\telle chante\nhe eats an apple\til mange\n" +
                                  std::string(66000, 'a') + "\tb\n");
  const Result r = run(quick({"long-word.tsv", "--max-length", "100000"}));
  CAPTURE(r.err);
  CHECK(r.code == 2);
  CHECK(r.says("a sentence has 66000 pieces; 5000 at most are taken; "
               "a smaller --max-length leaves such pairs out"));
}

TEST_CASE("doctor --clean keeps the good copy of a damaged pair, and no BOM in the middle of a line") {
  const std::string damaged = "she sings \xEF\xBF\xBD\telle chante\n";
  write_file("twice.tsv", damaged + "he eats an apple\til mange une pomme\nShe sings\telle chante\n");
  CHECK(run(quick({"twice.tsv", "--clean", "twice.good"})).code == 1);
  CHECK(read_file("twice.good") == "he eats an apple\til mange une pomme\nShe sings\telle chante\n");
  write_file("bom.en", "\xEF\xBB\xBFshe sings\n");
  write_file("bom.fr", "\xEF\xBB\xBF" "elle chante\n");
  run(quick({"--source", "bom.en", "--target", "bom.fr", "--clean", "bom.good"}));
  CHECK(read_file("bom.good") == "she sings\telle chante\n");
}

TEST_CASE("a file of pairs without one is an error wherever one is named") {
  write_file("tabless.txt", "she sings\nhe eats\n");
  write_file("few-sound.tsv", "she sings\telle chante\nhe eats an apple\til mange une pomme\n");
  const std::string none = "translator: tabless.txt: has no usable sentence pairs\n";
  CHECK(run(quick({"few-sound.tsv", "--valid", "tabless.txt"})).says(none));
  CHECK(run({"train", "--data", "few-sound.tsv", "--valid", "tabless.txt", "--out", "never"}).says(none));
  CHECK(run({"diff", trained_model(), trained_model(), "few-sound.tsv", "--train", "tabless.txt"}).says(none));
}

TEST_CASE("doctor: wrong usage and files that are none") {
  CHECK(run({"doctor"}).code == 2);
  CHECK(run({"doctor"}).says("translator: doctor: name a file of pairs, or --source and --target\n"));
  CHECK(run({"doctor", "a.tsv", "--source", "b"}).code == 2);
  CHECK(run({"doctor", "--source", "b"}).code == 2);
  CHECK(run({"doctor", "a.tsv", "--target", "b"}).code == 2);
  check_refused({"doctor", "missing.tsv"}, 1, "missing.tsv: cannot be read: No such file or directory");
  CHECK(run({"doctor", "."}).err == "translator: .: is a directory\n");
  Result none = run({"doctor", "-"}, {.input = "nothing\n"});
  CHECK(none.code == 1);
  CHECK(none.err ==
        "standard input: 0 of 1 lines read, 1 bad\n"
        "  standard input:1: no tab between source and target\n"
        "translator: standard input: has no usable sentence pairs\n");
  Result evil = run(quick({"-"}), {.input = "a \x1B[31m b\tc\nd e\tf \xE2\x80\xAE g\n"});
  CHECK(acts_on_terminal(evil.out) == "");
}

TEST_CASE("train says what is seriously wrong with its data, and nothing else") {
  std::string text = read_file(short_pairs());
  for (int i = 0; i < 20; ++i) text += fmt::format("these are words {0}\tthese are words {0}\n", i);
  write_file("copies.tsv", text);
  Result r = run_well({"train", "--data", "copies.tsv", "--epochs", "1", "--hidden", "8", "--embedding", "8",
                       "--batch-size", "256", "-o", "of-copies"});
  CHECK(r.says(" pairs: the target is the source\n"));
  CHECK(r.says("`translator doctor` says which, and --clean leaves them out.\n"));
  REQUIRE(exists(harmed()));
  // Of several files it is not the doctor's to say.
  Result several = run({"train", "--data", "copies.tsv,sound.tsv=0.01", "--epochs", "1", "--hidden", "8",
                        "--embedding", "8", "--batch-size", "256", "-o", "of-several"});
  CHECK(several.says(" pairs: the target is the source\n"));
  CHECK_FALSE(several.says("`translator doctor`"));
  Result quiet = run({"train", "--data", "copies.tsv", "--epochs", "1", "--hidden", "8", "--embedding", "8",
                      "--batch-size", "256", "-o", "of-copies", "--force", "-q"});
  CHECK(quiet.err == "");
  Result sound = run({"train", "--data", "sound.tsv", "--epochs", "1", "--hidden", "8", "--embedding", "8",
                      "--batch-size", "256", "-o", "of-sound"});
  CHECK_FALSE(sound.says("`translator doctor`"));
}

TEST_CASE("doctor: the minutes are those of all pairs at the speed that was measured") {
  REQUIRE(exists(harmed()));
  const auto all = json_text::parse(
      run({"doctor", "sound.tsv", "--seconds", "0.2", "--threads", "1", "--json"}).out);
  const auto& t = all.at("training");
  const double tokens = t.at("minutes").get<double>() * 60 * t.at("tokens_per_second").get<double>();
  const double of_pair = tokens / t.at("epochs").get<double>() / all.at("pairs").get<double>();
  CHECK(of_pair > 2);
  CHECK(of_pair < 30);
  CHECK(t.at("min_counts").at(0).at("target_words") > 0);  // by the one thread, too
  const auto& sizes = t.at("piece_sizes");
  if (!sizes.empty()) CHECK(sizes.at(0).at("source_pieces") > sizes.at(1).at("source_pieces"));
}

TEST_CASE("doctor: the share of words that become <unk> is that of running words") {
  write_file("counted.tsv", "cat cat dog\tchat chat chien\ncat dog bird\tchat chien oiseau\n");
  const auto counts = json_text::parse(run(quick({"counted.tsv", "--valid", "counted.tsv", "--json"})).out)
                          .at("training").at("min_counts");
  REQUIRE(counts.at(2).at("min_count") == 3);
  CHECK(counts.at(2).at("source_words") == 1);
  CHECK(counts.at(2).at("source_unknown") == 0.5);
}
