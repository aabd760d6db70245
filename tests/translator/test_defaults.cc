// What a run that is told little does, by the data and the network.

#include <translator/commands/commands.h>
#include <common/error.h>

#include "../about.h"
#include "../quick_doctest.h"

using namespace translator;

namespace {

TrainCommand own(const std::set<std::string>& given = {}) {
  TrainCommand o;
  o.data.data = "pairs.tsv";
  o.given = given;
  return o;
}

// The command as it is carried out for so many pairs, and what is said.
std::string filled(TrainCommand& o, int64_t pairs) {
  fill_text_defaults(o);
  return fill_defaults(o, pairs);
}

}  // namespace

TEST_CASE("defaults: fewer pairs get fewer pieces and more passes, and are told so") {
  int64_t pieces = 0, batch = 0, epochs = 1000;
  for (int64_t pairs : {200, 4'999, 5'000, 20'000, 60'000, 10'000'000}) {
    CAPTURE(pairs);
    TrainCommand o = own({"--subwords"});
    o.model.subwords = "bpe";
    const std::string said = filled(o, pairs);
    const bool few = pairs < 20'000, between = !few && pairs < 60'000;
    const std::string rise = pairs < 5'000 ? "10" : few ? "4" : between ? "2" : "1.5";
    CHECK(said == "For " + std::to_string(pairs) + " pairs: " + std::to_string(default_pieces(pairs)) +
                      " pieces, " + (between ? "384" : "256") + " units, dropout " +
                      (few       ? "0.4"
                       : between ? "0.5"
                                 : "0.2") +
                      ", rising over " + rise + " of the usual " + std::to_string(o.train.epochs) +
                      " epochs, batches of " + std::to_string(o.train.batch_size) + ", " +
                      std::to_string(o.train.epochs) + " epochs" +
                      (few ? ", optimizer muon, recurrent dropout 0.2, subword dropout 0.1" : "") +
                      (few       ? "; few are learnt by heart before they are understood"
                       : between ? "; so many are learnt by heart without much dropout"
                                 : "; so many are not soon learnt by heart") +
                      " (docs/recipes.md).");
    CHECK(o.model.network.rnn.recurrent_dropout == (few ? 0.2 : 0));
    CHECK(o.model.network.rnn.variational == few);
    CHECK(o.train.subword_dropout == (few ? 0.1 : 0));
    CHECK(o.train.dropout_warmup == std::stod(rise));
    CHECK(default_pieces(pairs) >= pieces);
    CHECK(o.train.batch_size >= batch);
    CHECK(o.train.epochs <= epochs);
    CHECK(o.model.network.hidden_size == (between ? 384 : 256));
    CHECK(o.model.network.embedding_dim == o.model.network.hidden_size);
    CHECK(o.model.network.attention == "concat");
    pieces = default_pieces(pairs);
    batch = o.train.batch_size;
    epochs = o.train.epochs;
  }
  CHECK(pieces > default_pieces(1));
}

TEST_CASE("defaults: so few pairs that none is held out are learnt by heart, in about 2,000 steps") {
  struct Few {
    int64_t pairs;
    const char *said, *rise;
    int64_t epochs;
  };
  for (const Few& f : {Few{1, "For 1 pair: ", "250", 2000}, {20, "For 20 pairs: ", "83.2", 666},
                       {199, "For 199 pairs: ", "10", 80}}) {
    CAPTURE(f.pairs);
    TrainCommand o = own({"--subwords"});
    o.model.subwords = "bpe";
    CHECK(filled(o, f.pairs) ==
          std::string(f.said) + "2000 pieces, 128 units, dropout 0.3, rising over " + f.rise +
              " of the usual " + std::to_string(f.epochs) + " epochs, batches of 8, " +
              std::to_string(f.epochs) + " epochs, recurrent dropout 0.2, subword dropout 0.1; so few can only "
                                         "be learnt by heart (docs/recipes.md).");
    CHECK(o.train.epochs == f.epochs);
    CHECK(o.train.optimizer == "adam");
    CHECK(o.train.validate_every == 100);
    TrainCommand looked = own({"--validate-every", "--batch-size"});
    looked.train.validate_every = 7, looked.train.batch_size = 1;
    filled(looked, f.pairs);
    CHECK(looked.train.validate_every == 7);
    CHECK(looked.train.epochs == f.epochs);
    TrainCommand tuned = own();
    tuned.from = "model";
    filled(tuned, f.pairs);
    CHECK(tuned.train.epochs == 20);
    CHECK(tuned.train.validate_every == 0);
  }
}

TEST_CASE("defaults: of so few pairs that ten judge the others the others are not learnt by heart") {
  Data data;
  data.train.resize(195);
  data.valid.resize(10);
  data.given = 205;
  TrainCommand o = own();
  fill_text_defaults(o);
  CHECK(fill_defaults(o, data).starts_with("For 205 pairs: "));
  CHECK(o.train.batch_size == 32);
  // Named ones are judged by, and the others are as few as they are.
  data.given = 195;
  TrainCommand named = own();
  fill_text_defaults(named);
  CHECK(fill_defaults(named, data).starts_with("For 195 pairs: "));
  CHECK(named.train.batch_size == 8);
}

TEST_CASE("defaults: a GRU narrower than its pairs would have it gets less dropout and a higher rate") {
  struct Narrower {
    int64_t units;
    double few, some, many;  // dropout
    const char* rate;
  };
  for (const Narrower& n : {Narrower{16, 0, 0, 0, "0.01"},
                            {32, 0.1, 0.1, 0, "0.01"},
                            {64, 0.2, 0.2, 0, "0.01"},
                            {96, 0.3, 0.3, 0.1, "0.008"},
                            {128, 0.3, 0.3, 0.1, "0.006"},
                            {256, 0.4, 0.4, 0.2, ""},
                            {384, 0.4, 0.5, 0.2, ""},
                            {512, 0.4, 0.5, 0.2, ""}}) {
    CAPTURE(n.units);
    auto dropout = [&](int64_t pairs) {
      TrainCommand o = own({"--hidden", "--embedding"});
      o.model.network.hidden_size = o.model.network.embedding_dim = n.units;
      const std::string said = filled(o, pairs), rate = std::string("learning rate ") + n.rate + ",";
      CHECK((said.find("learning rate") != std::string::npos) == (*n.rate != 0));
      if (*n.rate) CHECK(said.find(rate) != std::string::npos);
      return o.model.network.rnn.dropout;
    };
    CHECK(dropout(2'000) == about(n.few));
    CHECK(dropout(10'000) == about(n.few));
    CHECK(dropout(29'000) == about(n.some));
    CHECK(dropout(100'000) == about(n.many));
  }
}

TEST_CASE("defaults: few pairs are learnt by Muon, with a decay that another optimiser has not") {
  TrainCommand o = own(), adam = own({"--optimizer"}), adamw = own({"--optimizer"});
  TrainCommand given = own({"--weight-decay"});
  adam.train.optimizer = "adam";
  adamw.train.optimizer = "adamw";
  given.train.weight_decay = 0.3;
  for (TrainCommand* each : {&o, &adam, &adamw, &given}) filled(*each, 19'999);
  CHECK(o.train.optimizer == "muon");
  CHECK(o.train.weight_decay == 0.1);
  CHECK(adam.train.optimizer == "adam");
  CHECK(adam.train.weight_decay == 0);
  CHECK(adamw.train.weight_decay == 0.01);
  CHECK(given.train.optimizer == "muon");
  CHECK(given.train.weight_decay == 0.3);
  TrainCommand many = own(), transformer = own(), few = own();
  transformer.model.model = few.model.model = "transformer";
  filled(few, 19'999);
  CHECK(few.train.optimizer == "muon");
  CHECK(few.train.lr == 5e-3);
  CHECK(few.train.usual_warmup == 400);
  for (TrainCommand* each : {&many, &transformer}) {
    filled(*each, 20'000);
    CHECK(each->train.optimizer == "adam");
    CHECK(each->train.weight_decay == 0);
  }
}

TEST_CASE("defaults: a Transformer is narrow, goes over the pairs more often, and its rate rises slowly") {
  TrainCommand gru = own();
  filled(gru, 29'000);
  TrainCommand o = own();
  o.model.model = "transformer";
  const std::string said = filled(o, 29'000);
  CHECK(said.find("dropout 0.2, rising over 12 of the usual 40 epochs, batches of 64, 40 epochs;") !=
        std::string::npos);
  CHECK(o.model.transformer.d_model == 128);
  CHECK(o.model.transformer.num_layers == 4);
  CHECK(o.model.transformer.dropout == 0.2);
  CHECK(o.train.lr == 4e-3);
  CHECK(o.train.warmup == 0);
  CHECK(o.train.usual_warmup == 1000);
  CHECK(o.train.epochs > gru.train.epochs);
  CHECK(gru.train.usual_warmup == 100);
  TrainCommand told = own({"--warmup", "--dropout-warmup"});
  told.model.model = "transformer";
  told.train.warmup = 7;
  told.train.dropout_warmup = 0.5;
  CHECK(filled(told, 29'000).find("dropout 0.2, batches of 64") != std::string::npos);
  CHECK(told.train.warmup == 7);
  CHECK(told.train.dropout_warmup == 0.5);
  TrainCommand undropped = own({"--dropout"});  // and none to rise
  CHECK(filled(undropped, 29'000).find("rising") == std::string::npos);
}

TEST_CASE("defaults: a wide Transformer learns by Muon, at a rate and a rise of its own") {
  for (int64_t width : {128, 255, 256, 512}) {
    CAPTURE(width);
    TrainCommand o = own({"--embedding"}), further = own({"--embedding"}), embedded;
    for (TrainCommand* each : {&o, &further, &embedded}) {
      each->model.model = "transformer";
      each->model.transformer.d_model = width;
    }
    further.from = "trained";
    embedded.given = {"--embedding"};
    const bool muon = width >= 256;
    const std::string said = filled(o, 29'000);
    CHECK((said.find("optimizer muon") != std::string::npos) == muon);
    CHECK(o.train.optimizer == (muon ? "muon" : "adam"));
    CHECK(o.train.weight_decay == (muon ? 0.1 : 0));
    CHECK(o.train.usual_warmup == (muon ? 400 : 1000));
    CHECK(o.train.lr == about(muon ? 0.005 : 0.004 * 128 / static_cast<double>(width), 1e-12));
    CHECK(o.train.dropout_warmup == about(12 * 128 / static_cast<double>(width), 1e-12));
    filled(further, 29'000);
    CHECK(further.train.optimizer == "adam");
    filled(embedded, 29'000);
    CHECK(embedded.train.optimizer == "adam");
    CHECK(embedded.train.lr == 2e-3);
  }
  TrainCommand given = own({"--embedding", "--optimizer"});
  given.model.model = "transformer";
  given.model.transformer.d_model = 256;
  given.train.optimizer = "adam";
  filled(given, 29'000);
  CHECK(given.train.lr == 2e-3);
  CHECK(given.train.usual_warmup == 1000);
  CHECK(given.train.weight_decay == 0);
}

TEST_CASE("defaults: few pairs for a trained model get a gentle rate and no noise besides its own") {
  for (const char* model : {"gru", "transformer"}) {
    TrainCommand fresh = own({"--optimizer"}), further = own(), many = own();
    fresh.train.optimizer = "adam";
    fresh.model.model = further.model.model = many.model.model = model;
    further.from = many.from = "trained";
    further.configured = many.configured = {"--dropout"};
    further.model.network.rnn.dropout = further.model.transformer.dropout = 0.15;
    filled(fresh, 500);
    const std::string said = filled(further, 500);
    const std::string rate = model == std::string("gru") ? "0.001" : "0.0013";
    CHECK(said == "For 500 pairs: learning rate " + rate +
                      ", batches of 32, 20 epochs; a trained model has most of it behind it "
                      "(docs/recipes.md).");
    CHECK(further.train.lr == about(fresh.train.lr / 3, 1e-12));
    CHECK(further.train.epochs == 20);
    CHECK(further.train.optimizer == "adam");
    CHECK(further.train.subword_dropout == 0);
    CHECK(further.train.dropout_warmup == 0);
    CHECK(further.model.network.rnn.recurrent_dropout == 0);
    CHECK(further.model.network.rnn.dropout == 0.15);
    CHECK(further.model.transformer.dropout == 0.15);
    // What is given stays, and many pairs are learnt from as ever.
    TrainCommand given = own({"--lr", "--epochs", "--subword-dropout"});
    given.from = "trained";
    given.train.lr = 0.5;
    given.train.epochs = 3;
    given.train.subword_dropout = 0.2;
    filled(given, 500);
    CHECK(given.train.lr == 0.5);
    CHECK(given.train.epochs == 3);
    CHECK(given.train.subword_dropout == 0.2);
    CHECK(filled(many, 5'000).find("learning rate") == std::string::npos);
    CHECK(many.train.lr == fresh.train.lr);
  }
  TrainCommand narrow = own({"--hidden", "--embedding"});  // as the trained model has them
  narrow.from = "trained";
  narrow.model.network.hidden_size = narrow.model.network.embedding_dim = 64;
  CHECK(filled(narrow, 500).find("learning rate 0.001,") != std::string::npos);
  CHECK(narrow.train.lr == about(0.001));
  CHECK(filled(narrow, 10'000).find("learning rate") == std::string::npos);
}

TEST_CASE("defaults: what is given stays, and is not told") {
  TrainCommand o =
      own({"--hidden", "--attention", "--subwords", "--dropout", "--batch-size", "--epochs", "--lr", "--ema",
           "--recurrent-dropout"});
  o.model.subwords = "none";
  o.model.network.attention = "dot";
  o.model.network.rnn.dropout = 0.75;
  o.train.batch_size = 7;
  o.train.epochs = 3;
  o.train.lr = 0.5;
  o.train.ema = 0;
  CHECK(filled(o, 3000) ==
        "For 3000 pairs: dropout rising over 10 of the usual 80 epochs, optimizer muon; few "
        "are learnt by heart before they are understood (docs/recipes.md).");
  o.given.insert("--dropout-warmup");
  o.given.insert("--optimizer");
  CHECK(filled(o, 3000) == "");
  CHECK(o.model.network.attention == "dot");
  CHECK(o.model.network.rnn.dropout == 0.75);
  CHECK(o.train.batch_size == 7);
  CHECK(o.train.epochs == 3);
  CHECK(o.train.lr == 0.5);
  CHECK(o.train.ema == 0);
  TrainCommand timed = own({"--max-minutes"});
  timed.train.max_minutes = 2;
  CHECK(filled(timed, 3000).find("over 10 of the usual 80 epochs, batches of 32, optimizer muon") !=
        std::string::npos);
  CHECK(timed.train.epochs == 0);
}

TEST_CASE("defaults: word vectors are tied where they can be, and those of both sides with joint pieces") {
  TrainCommand o = own({"--subwords"});
  o.model.subwords = "bpe";
  filled(o, 3000);
  CHECK(o.model.subword_model == "joint");
  CHECK(o.model.network.tie_embeddings);
  CHECK(o.model.network.tie_source);
  CHECK(o.model.transformer.tie_source);
  TrainCommand words = own({"--subwords"});
  words.model.subwords = "none";
  filled(words, 3000);
  CHECK(words.model.network.tie_embeddings);
  CHECK_FALSE(words.model.network.tie_source);
  TrainCommand alike = own({"--embedding"});
  alike.model.network.embedding_dim = 128;
  filled(alike, 3000);
  CHECK(alike.model.network.hidden_size == 128);  // where one is given, the other is as wide
  CHECK(alike.model.network.tie_embeddings);
  alike = own({"--hidden"});
  alike.model.network.hidden_size = 96;
  filled(alike, 3000);
  CHECK(alike.model.network.embedding_dim == 96);
  TrainCommand narrow = own({"--embedding", "--hidden"});
  narrow.model.network.embedding_dim = 128;
  narrow.model.network.hidden_size = 256;
  filled(narrow, 3000);
  CHECK_FALSE(narrow.model.network.tie_embeddings);
  narrow.given.insert("--tie-embeddings");
  narrow.model.network.tie_embeddings = true;
  try {
    filled(narrow, 3000);
    FAIL("must be refused");
  } catch (const UsageError& e) {
    CHECK(std::string(e.what()) == "--tie-embeddings needs --embedding and --hidden alike: 128 and 256");
  }
}

TEST_CASE("defaults: what makes no sense together is refused with what it needs") {
  auto said = [](TrainCommand o) {
    try {
      filled(o, 3000);
    } catch (const UsageError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  TrainCommand both_ways = own({"--reverse-source"});
  both_ways.model.network.rnn.reverse = true;
  CHECK(said(both_ways) ==
        "--reverse-source needs --unidirectional: both ways, a source is read from its end as well");
  both_ways.model.network.rnn.bidirectional = false;
  CHECK(said(both_ways) == "");
  CHECK(said(own({"--verb-final"})) ==
        "--verb-final is of the embedded corpus: --data and --source are as they are");
}

TEST_CASE("defaults: the embedded corpus has its own, whatever its size, and says nothing") {
  for (const char* model : {"gru", "transformer"}) {
    TrainCommand o;
    o.model.model = model;
    CHECK(filled(o, 40'000) == "");
    CHECK(o.model.subwords == "none");
    CHECK(o.model.letter_case == "lower");
    CHECK(o.model.network.hidden_size == 128);
    CHECK(o.model.network.rnn.dropout == 0);
    CHECK(o.model.network.tie_embeddings);
    CHECK(o.train.epochs == 6);
    CHECK(o.train.batch_size == 32);
    CHECK(o.train.ema == 0);
    CHECK(o.train.label_smoothing == 0.1);
    CHECK(o.train.lr == (o.model.model == "gru" ? 3e-3 : 2e-3));
    CHECK(o.train.optimizer == "adam");
  }
}
