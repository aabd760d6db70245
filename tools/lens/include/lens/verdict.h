#pragma once

namespace lens {

/// What `lens lesson` and `lens lab` believe of a learner's program that they built. They put its main() under
/// another name and call it from one that ends here: `return lens::tell(learners_main())`. The result is
/// written where the environment's LENS_VERDICT says, beside a word that it names, too. A program that ends in
/// any other way, whatever its exit status and whatever it prints, has told nothing, and has not passed.
/// Returns code.
int tell(int code);

/// A check was made; tell() says how many, and how many failed.
void count_check(bool passed);

}  // namespace lens
