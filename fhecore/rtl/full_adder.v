// Full adder. Kept as a cell in synthesis, where fhecore/syn maps it to the library's inverting adder.
// FLIP = 1 computes the same function with inputs and outputs complemented: a full adder is self-dual,
// so trees of inverting cells need no inverters when FLIP alternates from level to level.
module full_adder #(
    parameter FLIP = 0
) (
    input  wire x,
    input  wire y,
    input  wire z,
    output wire s,
    output wire c
);
    generate
        if (FLIP != 0) begin : g_dual
            assign s = ~(~x ^ ~y ^ ~z);
            assign c = ~((~x & ~y) | (~x & ~z) | (~y & ~z));
        end else begin : g_plain
            assign s = x ^ y ^ z;
            assign c = (x & y) | (x & z) | (y & z);
        end
    endgenerate
endmodule
