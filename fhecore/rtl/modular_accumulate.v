// next = (acc + r) mod q for acc in [0, q) and r = r_s + r_c mod 2^(W+2) in [0, 2q); acc counts as 0 with
// first, and stays with valid = 0. This is the loop that bounds the clock: no register can be put into it.
// The three candidates acc + r - {0, q, 2q} are in [-2q, 3q), so bit W+1 is the sign; the first that is
// not negative, from the right, is the result.
module modular_accumulate #(
    parameter W = 32
) (
    input  wire [W-1:0] acc,
    input  wire [W+1:0] r_s,
    input  wire [W+1:0] r_c,
    input  wire [W-1:0] q,
    input  wire         first,
    input  wire         valid,
    output wire [W-1:0] next
);
    localparam R = W + 2;
    wire [R-1:0] base = {2'b00, acc & ~{W{first}}};

    // -q = ~q + 1: each +1 goes into the free low bit of a carry row.
    wire [R-1:0] s0, c0, t1, s1, c1, t2, s2, c2;
    /* verilator lint_off UNUSEDSIGNAL */
    wire [R-1:0] d1, d2;  // bit 0 is replaced
    /* verilator lint_on UNUSEDSIGNAL */
    csa #(.W(R)) add0  (.x(r_s), .y(r_c), .z(base),           .s(s0), .c(c0));
    csa #(.W(R)) less1 (.x(r_s), .y(r_c), .z({2'b11, ~q}),    .s(t1), .c(d1));
    csa #(.W(R)) add1  (.x(t1),  .y({d1[R-1:1], 1'b1}), .z(base), .s(s1), .c(c1));
    csa #(.W(R)) less2 (.x(r_s), .y(r_c), .z({1'b1, ~q, 1'b1}), .s(t2), .c(d2));
    csa #(.W(R)) add2  (.x(t2),  .y({d2[R-1:1], 1'b1}), .z(base), .s(s2), .c(c2));

    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: the candidate that is picked is below 2^W; of the others only the sign matters.
    wire [R-1:0] sum0, sum1, sum2;
    /* verilator lint_on UNUSEDSIGNAL */
    prefix_adder #(.W(R), .KIND(2)) adder0 (.x(s0), .y(c0), .carry_in(1'b0), .sum(sum0));
    prefix_adder #(.W(R), .KIND(2)) adder1 (.x(s1), .y(c1), .carry_in(1'b0), .sum(sum1));
    prefix_adder #(.W(R), .KIND(2)) adder2 (.x(s2), .y(c2), .carry_in(1'b0), .sum(sum2));

    // One-hot select: shorter than a chain of multiplexers.
    wire take2 = valid & ~sum2[R-1];
    wire take1 = valid & sum2[R-1] & ~sum1[R-1];
    wire take0 = valid & sum1[R-1];
    assign next = ({W{take2}} & sum2[W-1:0]) | ({W{take1}} & sum1[W-1:0])
                | ({W{take0}} & sum0[W-1:0]) | ({W{~valid}} & acc);
endmodule
