"""Passes of the compiler: frozen options called on frozen data, which return new data.

The order, and why (`crenel.nn.compiler.compile` walks it):

1. `Fold`: norms disappear first, so that ranges are of what will be computed
2. `Calibrate`: ranges of every value, of the exact network
3. `Scales`: one bound a value; what meets in a sum shares one
4. `Approximate`: polynomials on these bounds
5. `Lower`: linear operations that follow each other become one transform, with layouts
6. `Levels`: from the result backwards; `Refreshes` where they do not suffice and parameters have bootstraps
"""
