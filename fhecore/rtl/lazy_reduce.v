// d = (x + y mod 2^A) mod q at the end of a column of lazy_pe: eight levels, an element a cycle.
//
// p < 2^A, A = 2W + G, q in (2^(W-4), 2^W), mu = floor(2^(2W+1) / q): the constants of modmul_pe. With
// s = W - 7 and F = W + 8 the estimate floor((p >> s) * mu / 2^F), columns below LO = W + 2 left out, is less than
// p/q by at most
//   2^(G-1)  (fraction of mu)  +  1/8  (bits of p below s)  +  ceil(LO/2) 2^LO / 2^F  (columns)  +  1  (floor)
// which for G = 4, W = 32 is below 9.4: the remainder is in [0, 16 q), and 8q, 4q, 2q and q are taken from it in
// turn, each where that leaves it positive.
// q and mu stand still, from the edge that samples x until d is there, for each bank.
module lazy_reduce #(
    parameter W     = 32,  // 16 or more
    parameter G     = 4,   // 4 or less
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
    output reg  [W-1:0] d,
    output reg          valid
);
    localparam S  = W - 7;
    localparam X  = A - S;         // bits of p that meet mu
    localparam D3 = (W + 5) / 2 + 1;
    localparam R  = W + 4;         // bits of the remainder, and of the estimate that it needs
    localparam LO = W + 2;
    localparam F  = W + 8;
    localparam HI = F + R;
    localparam Q  = HI - LO;
    localparam DQ = W / 2 + 2;     // digits of q, with a zero on top

    reg [7:1] valids;
    reg [7:1] bank;
    always @(posedge clk) begin
        {valid, valids} <= rst ? 8'd0 : {valids, valid_in};
        bank <= {bank[6:1], bank_in};
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

    // Levels 5 to 8. A remainder less 2^n q is in [-2^n q, 2^n q), so its top bit is its sign.
    wire [W-1:0] q4 = bank[4] ? q1 : q0;
    wire [W-1:0] q5 = bank[5] ? q1 : q0;
    wire [W-1:0] q6 = bank[6] ? q1 : q0;
    wire [W-1:0] q7 = bank[7] ? q1 : q0;
    /* verilator lint_off UNUSEDSIGNAL */
    wire [R-1:0] ry;  // bit 0 is replaced
    wire [R-1:0] whole, less8;
    /* verilator lint_on UNUSEDSIGNAL */
    wire [R-1:0] rx;
    csa #(.W(R)) with8 (.x(r4x), .y(r4y), .z({1'b1, ~q4, 3'b111}), .s(rx), .c(ry));
    prefix_adder #(.W(R), .KIND(2)) add (.x(r4x), .y(r4y), .carry_in(1'b0), .sum(whole));
    prefix_adder #(.W(R), .KIND(2)) add8 (.x(rx), .y({ry[R-1:1], 1'b1}), .carry_in(1'b0), .sum(less8));
    reg  [R-2:0] r5;
    reg  [R-3:0] r6;
    reg  [R-4:0] r7;
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: what is picked is below q, 2q or 4q; of the others only the sign matters.
    wire [R-1:0] less4, less2, less1;
    /* verilator lint_on UNUSEDSIGNAL */
    prefix_adder #(.W(R), .KIND(2)) sub4 (
        .x({1'b0, r5}), .y({2'b11, ~q5, 2'b11}), .carry_in(1'b1), .sum(less4));
    prefix_adder #(.W(R), .KIND(2)) sub2 (
        .x({2'b00, r6}), .y({3'b111, ~q6, 1'b1}), .carry_in(1'b1), .sum(less2));
    prefix_adder #(.W(R), .KIND(2)) sub1 (
        .x({3'b000, r7}), .y({4'b1111, ~q7}), .carry_in(1'b1), .sum(less1));
    always @(posedge clk) begin
        r5 <= less8[R-1] ? whole[R-2:0] : less8[R-2:0];
        r6 <= less4[R-1] ? r5[R-3:0] : less4[R-3:0];
        r7 <= less2[R-1] ? r6[R-4:0] : less2[R-4:0];
        d  <= less1[R-1] ? r7[W-1:0] : less1[W-1:0];
    end
endmodule
