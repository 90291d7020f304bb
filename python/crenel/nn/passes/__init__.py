"""Passes of the compiler: frozen options called on frozen data, which return new data.

The order, and why (`crenel.nn.compiler.compile` walks it):

1. `Fold`: norms disappear first, so that ranges are of what will be computed
2. `Unfold`: norms, softmax and attention become what ciphertexts can do, on the intervals of samples
3. `Calibrate`: ranges of every value, of the exact network
4. `Scales`: one bound a value; what meets in a sum shares one
5. `Approximate`: polynomials on these bounds
6. `Lower`: linear operations that follow each other become one transform; `Layouts` tries those there are
7. `Levels`: from the result backwards; `Refreshes` where they do not suffice and parameters have bootstraps;
   `Splits`: baby and giant steps of all
8. `Fill`: what slots without an element hold, where zeros will not do
"""
