// What `lens explain --text` says.

#include "../quick_doctest.h"
#include "sentence/sentence.h"
#include "subjects.h"

TEST_CASE("uniform attention has no gradient of scores, and the text claims none") {
  lens::Subject subject = lens::test::subject({.attention = "uniform"});
  lens::Dissection d = subject.dissect();
  lens::SentenceTrace trace = lens::trace_sentence(d);
  const std::string text = lens::explain_text(subject, d, trace, {.width = 100});
  CHECK(text.find("\nNo score pull: nothing that is learned leads to the scores, and no gradient arrives "
                  "there.\n") != std::string::npos);
  CHECK(text.find("Score pull, ") == std::string::npos);
  CHECK(text.find("sum of dL/de_j") == std::string::npos);
  CHECK(text.find("       none |") != std::string::npos);
}
