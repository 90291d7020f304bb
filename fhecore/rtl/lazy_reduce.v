// d = (x + y mod 2^A) mod q at the end of a column of lazy_pe: 4 + G levels, an element a cycle.
//
// p < 2^A, A = 2W + G, q in (2^(W-4), 2^W), mu = floor(2^(2W+1) / q): the constants of modmul_pe. With
// s = W - 7 and F = W + 8 the estimate floor((p >> s) * mu / 2^F), columns below LO = W + 2 left out, is less than
// p/q by at most
//   2^(G-1)  (fraction of mu)  +  1/8  (bits of p below s)  +  ceil(LO/2) 2^LO / 2^F  (columns)  +  1  (floor)
// which for G = 4, W = 32 is below 9.4: the remainder is in [0, 16 q), and 8q, 4q, 2q and q are taken from it in
// turn, each where that leaves it positive. Twice the steps, G = 5, lose 17.4 at most, and 16q is taken first: mu is
// as wide as the instruction has it, and a level more stands for the bits that it lacks.
// q and mu stand still, from the edge that samples x until d is there, for each bank.
module lazy_reduce #(
    parameter W     = 32,  // 16 or more
    parameter G     = 4,   // 2 to 6
    parameter CELLS = 1,   // of csatree
    parameter A     = 2 * W + G
) (
    input  wire         clk,
    input  wire         rst,  // synchronous; clears control only
    input  wire [A-1:0] x,
    input  wire [A-1:0] y,
    input  wire         valid_in,
    input  wire         bank_in,
    input  wire [W-1:0] q0,
    input  wire [W-1:0] q1,
    input  wire [W+4:0] mu0,
    input  wire [W+4:0] mu1,
    output wire [W-1:0] d,
    output reg          valid
);
    localparam S  = W - 7;
    localparam X  = A - S;         // bits of p that meet mu
    localparam D3 = (W + 5) / 2 + 1;
    localparam R  = W + G;         // bits of the remainder, and of the estimate that it needs
    localparam LO = W + 2;
    localparam F  = W + 8;
    localparam HI = F + R;
    localparam Q  = HI - LO;
    localparam DQ = (R + 1) / 2;   // digits of q and a zero on top: 2 DQ + 1 columns are R or more
    localparam L  = 4 + G;         // levels

    reg [L-1:1] valids;
    reg [L-1:1] bank;
    always @(posedge clk) begin
        {valid, valids} <= rst ? {L{1'b0}} : {valids, valid_in};
        bank <= {bank[L-2:1], bank_in};
    end

    // Level 1: p.  Level 2: quotient estimate in three rows.
    wire [A-1:0] p_next;
    prefix_adder #(.W(A), .KIND(2)) resolve_p (.x(x), .y(y), .carry_in(1'b0), .sum(p_next));
    wire [D3-1:0]   one_mu, two_mu, neg_mu;
    reg  [D3-1:0]   one3, two3, neg3;
    wire [D3*Q-1:0] rows3;
    wire [3*Q-1:0]  sum3;
    reg  [A-1:0]    p1;
    booth_recode #(.B(W+5)) recode_mu (.y(bank_in ? mu1 : mu0), .one(one_mu), .two(two_mu), .neg(neg_mu));
    booth_rows #(.N(X), .D(D3), .FROM(LO), .TO(HI)) estimate (
        .x(p1[A-1:S]), .one(one3), .two(two3), .neg(neg3), .rows(rows3));
    csatree #(.N(D3), .W(Q), .OUT(3), .CELLS(CELLS)) estimate_tree (.in_rows(rows3), .out_rows(sum3));
    reg [3*Q-1:0] estimate2;
    reg [R-1:0]   p2, p3;
    always @(posedge clk) begin
        p1 <= p_next;
        {one3, two3, neg3} <= {one_mu, two_mu, neg_mu};
        estimate2 <= sum3;
        p2 <= p1[R-1:0];
        p3 <= p2;
    end

    // Level 3: the estimate.
    wire [2*Q-1:0] rows4;
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: the low columns of the estimate only carry.
    wire [Q-1:0]   quotient_next;
    /* verilator lint_on UNUSEDSIGNAL */
    csatree #(.N(3), .W(Q), .CELLS(CELLS)) rest_of_estimate (.in_rows(estimate2), .out_rows(rows4));
    prefix_adder #(.W(Q), .KIND(2)) resolve_estimate (
        .x(rows4[Q-1:0]), .y(rows4[2*Q-1:Q]), .carry_in(1'b0), .sum(quotient_next));
    wire [DQ-1:0] one_q, two_q, neg_q;
    reg  [DQ-1:0] one5, two5, neg5;
    booth_recode #(.B(W), .D(DQ)) recode_q (.y(bank[2] ? q1 : q0), .one(one_q), .two(two_q), .neg(neg_q));
    reg [R-1:0] quotient3;
    always @(posedge clk) begin
        quotient3 <= quotient_next[Q-1:Q-R];
        {one5, two5, neg5} <= {one_q, two_q, neg_q};
    end

    // Level 4: p less its multiple of q, in two rows.
    wire [DQ*R-1:0] rows5;
    wire [2*R-1:0]  remainder;
    booth_rows #(.N(R), .D(DQ), .TO(R), .NEGATE(1)) multiple (
        .x(quotient3), .one(one5), .two(two5), .neg(neg5), .rows(rows5));
    csatree #(.N(DQ+1), .W(R), .CELLS(CELLS)) remainder_tree (.in_rows({p3, rows5}), .out_rows(remainder));
    reg [R-1:0] r4x, r4y;
    always @(posedge clk) {r4y, r4x} <= remainder;

    // Levels 5 to 4 + G. A remainder less 2^n q is in [-2^n q, 2^n q), so its top bit is its sign. The first of them
    // resolves both candidates from the two rows; the others take 2^n q from what is left, in a row.
    wire [W-1:0] q_first = bank[4] ? q1 : q0;
    /* verilator lint_off UNUSEDSIGNAL */
    wire [R-1:0] ry;  // bit 0 is replaced
    wire [R-1:0] whole, less_first;
    /* verilator lint_on UNUSEDSIGNAL */
    wire [R-1:0] rx;
    csa #(.W(R)) with_first (.x(r4x), .y(r4y), .z({1'b1, ~q_first, {(G-1){1'b1}}}), .s(rx), .c(ry));
    prefix_adder #(.W(R), .KIND(2)) add (.x(r4x), .y(r4y), .carry_in(1'b0), .sum(whole));
    prefix_adder #(.W(R), .KIND(2)) add_first (
        .x(rx), .y({ry[R-1:1], 1'b1}), .carry_in(1'b0), .sum(less_first));
    reg [R-2:0] rest_first;
    always @(posedge clk) rest_first <= less_first[R-1] ? whole[R-2:0] : less_first[R-2:0];

    genvar n;
    generate
        for (n = G - 2; n >= 0; n = n - 1) begin : take  // 2^n q from what is below 2^(n+1) q
            wire [W-1:0] q = bank[3+G-n] ? q1 : q0;
            wire [W+n:0] given;
            /* verilator lint_off UNUSEDSIGNAL */
            // Reason: what is picked is below 2^n q; of the other only the sign matters.
            wire [W+n+1:0] less;
            /* verilator lint_on UNUSEDSIGNAL */
            wire [W+n+1:0] minus;
            reg  [W+n-1:0] rest;
            if (n == G - 2) begin : g_second
                assign given = rest_first;
            end else begin : g_later
                assign given = take[n+1].rest;
            end
            if (n == 0) begin : g_last
                assign minus = {2'b11, ~q};
            end else begin : g_multiple
                assign minus = {2'b11, ~q, {n{1'b1}}};
            end
            prefix_adder #(.W(W+n+2), .KIND(2)) subtract (
                .x({1'b0, given}), .y(minus), .carry_in(1'b1), .sum(less));
            always @(posedge clk) rest <= less[W+n+1] ? given[W+n-1:0] : less[W+n-1:0];
        end
    endgenerate
    assign d = take[0].rest;
endmodule
