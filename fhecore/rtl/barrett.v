// Barrett reduction, pipelined, one word a cycle: r = p mod q for any p < 2^(2W), q in (2^(W-4), 2^W),
// mu = floor(2^(2W+1) / q). q and mu belong to the p of the same cycle and travel with it.
// p sampled at edge n gives r after edge n + STAGES - 1. Method and bounds: modmul_pe_cs.
module barrett #(
    parameter W      = 32,  // word bits, 6..32
    parameter STAGES = 5,   // register levels, r included; the split is made for 5
    parameter CELLS  = 1    // trees of full_adder cells, see csa
) (
    input  wire           clk,
    input  wire [2*W-1:0] p,
    input  wire [W-1:0]   q,
    input  wire [W+4:0]   mu,
    output reg  [W-1:0]   r    // in [0, q)
);
    localparam D1 = W / 2 + 1;        // Booth digits of q
    localparam D3 = (W + 5) / 2 + 1;  // of mu
    localparam X  = W + 7;            // bits of p that meet mu
    localparam LO = W + 2;            // columns of x*mu that are formed: LO .. HI-1
    localparam HI = 2 * W + 10;
    localparam Q  = HI - LO;
    localparam R  = W + 2;            // bits of the quotient estimate and of the remainder

    generate
        if (STAGES != 5) begin : g_unsupported
            barrett_needs_five_stages stages_must_be_5 ();
        end
    endgenerate

    // Level 1: operands, mu as Booth digits.
    wire [D3-1:0]  one_next, two_next, neg_next;
    reg  [D3-1:0]  mu_one, mu_two, mu_neg;
    reg  [2*W-1:0] p1;
    booth_recode #(.B(W+5)) recode_mu (.y(mu), .one(one_next), .two(two_next), .neg(neg_next));
    always @(posedge clk) begin
        p1 <= p;
        {mu_one, mu_two, mu_neg} <= {one_next, two_next, neg_next};
    end

    // Level 2: quotient estimate, carry-save.
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: x is the top of p; the zeros stand below bit 0 for W < 7.
    wire [2*W+6:0]  p_padded = {p1, 7'b0};
    /* verilator lint_on UNUSEDSIGNAL */
    wire [D3*Q-1:0] estimate_rows;
    wire [2*Q-1:0]  estimate_sum;
    booth_rows #(.N(X), .D(D3), .FROM(LO), .TO(HI)) estimate (
        .x(p_padded[2*W+6:W]), .one(mu_one), .two(mu_two), .neg(mu_neg), .rows(estimate_rows));
    csatree #(.N(D3), .W(Q), .CELLS(CELLS)) estimate_tree (.in_rows(estimate_rows), .out_rows(estimate_sum));
    reg [2*Q-1:0] sum2;
    reg [R-1:0]   p2;
    always @(posedge clk) begin
        sum2 <= estimate_sum;
        p2   <= p1[R-1:0];
    end

    // Level 3: quotient estimate; q, two levels late, as Booth digits.
    reg [W-1:0] q1, q2, q3, q4;
    always @(posedge clk) begin
        q1 <= q;
        q2 <= q1;
        q3 <= q2;
        q4 <= q3;
    end
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: the low columns of the estimate only carry.
    wire [Q-1:0]  estimate_word;
    /* verilator lint_on UNUSEDSIGNAL */
    wire [D1-1:0] q_one_next, q_two_next, q_neg_next;
    prefix_adder #(.W(Q)) resolve (
        .x(sum2[Q-1:0]), .y(sum2[2*Q-1:Q]), .carry_in(1'b0), .sum(estimate_word));
    booth_recode #(.B(W)) recode_q (.y(q2), .one(q_one_next), .two(q_two_next), .neg(q_neg_next));
    reg [R-1:0]  qh3, p3;
    reg [D1-1:0] q_one, q_two, q_neg;
    always @(posedge clk) begin
        qh3 <= estimate_word[Q-1:Q-R];
        p3  <= p2;
        {q_one, q_two, q_neg} <= {q_one_next, q_two_next, q_neg_next};
    end

    // Level 4: remainder in [0, 2q), carry-save.
    wire [D1*R-1:0] multiple_rows;
    wire [2*R-1:0]  remainder;
    booth_rows #(.N(R), .D(D1), .TO(R), .NEGATE(1)) multiple (
        .x(qh3), .one(q_one), .two(q_two), .neg(q_neg), .rows(multiple_rows));
    csatree #(.N(D1+1), .W(R), .CELLS(CELLS)) remainder_tree (
        .in_rows({p3, multiple_rows}), .out_rows(remainder));
    reg [R-1:0] r4s, r4c;
    always @(posedge clk) {r4c, r4s} <= remainder;

    // Level 5: less q where that is not negative.
    wire [R-1:0] t, d;
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: results are below 2^W; of the difference the sign matters too.
    wire [R-1:0] whole, less;
    /* verilator lint_on UNUSEDSIGNAL */
    csa #(.W(R)) less_q (.x(r4s), .y(r4c), .z({2'b11, ~q4}), .s(t), .c(d));
    prefix_adder #(.W(R)) adder0 (.x(r4s), .y(r4c), .carry_in(1'b0), .sum(whole));
    prefix_adder #(.W(R)) adder1 (.x(t), .y(d), .carry_in(1'b1), .sum(less));
    always @(posedge clk) r <= less[R-1] ? whole[W-1:0] : less[W-1:0];
endmodule
