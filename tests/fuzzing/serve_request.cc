// What a client of `lens serve` may send: the body of a request, as it is read before anything is asked of a
// model.

#include <cmath>

#include "fuzz.h"
#include "serve/request.h"

using namespace fuzzing;

FUZZ_TARGET(serve_request,
            {R"({"text":"he sings"})",
             R"({"model":"m","text":"she sings","prefix":[4,5],"force":"la","hidden":[0,2],"seed":7,)"
             R"("sampling_temperature":0.5,"attention_temperature":2,"beam_size":5})",
             R"({"text":"é 中","seed":null,"hidden":[]})"}) {
  return accepts<lens::Refused>([&] {
    const lens::ServeRequest r = lens::read_request(input);
    must(!r.text.empty() && r.text.size() <= lens::kMostTextBytes, "there is a sentence, and no more");
    must(r.force.size() <= lens::kMostTextBytes, "a forced text has its bounds");
    must(r.prefix.size() <= lens::kMostTokens && r.hidden.size() <= lens::kMostTokens,
         "lists have their bounds");
    for (const auto* list : {&r.prefix, &r.hidden})
      for (int32_t id : *list) must(id >= 0, "a number counts from 0");
    must(r.sampling_temperature > 0 && std::isfinite(r.sampling_temperature), "a temperature is above 0");
    must(!r.attention_temperature || *r.attention_temperature > 0, "so is the attention's");
    must(r.beam_size >= 1 && r.beam_size <= 10, "a beam has its bounds");
  });
}
