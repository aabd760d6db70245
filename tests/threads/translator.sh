#!/bin/sh
# The translator from training to translation with 2 and 8 threads, live view and Ctrl-C's handler included: what the
# thread sanitizer reports ends it.
#   translator.sh TRANSLATOR
set -eu
translator=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$translator" corpus --split train --count 300 >pairs.tsv
"$translator" corpus --split valid --count 40 >valid.tsv
for threads in 2 8; do
  for attention in bahdanau general; do
    out=model-$threads-$attention
    "$translator" train --subwords none --data pairs.tsv --valid valid.tsv --hidden 16 --embedding 12 --epochs 2 --batch-size 16 \
      --attention "$attention" --threads "$threads" --out "$out" 2>"$out.log" || { cat "$out.log"; exit 1; }
    "$translator" train --resume --out "$out" --data pairs.tsv --valid valid.tsv --batch-size 16 --epochs 3 \
      --threads "$threads" \
      2>"$out.log" || { cat "$out.log"; exit 1; }
    cut -f 1 valid.tsv | "$translator" translate "$out" --beam-size 3 --threads "$threads" >"$out.txt"
    [ "$(wc -l <"$out.txt")" = 40 ]
    "$translator" evaluate "$out" valid.tsv --threads "$threads" >"$out.txt"
    echo "$threads threads, $attention: trained, resumed, translated, evaluated"
  done
done
