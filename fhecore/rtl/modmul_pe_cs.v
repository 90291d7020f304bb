// Modular multiply-accumulate element, carry-save and balanced by hand: the one to synthesise.
// Ports, values and cycles are those of modmul_pe, which says what is computed; here is how.
//
//   level 1  a*b + c in TREE1 rows (Booth radix 4)      [beside it: operands for the neighbours]
//   level 2  p = a*b + c
//   level 3  quotient estimate in TREE3 rows, low columns left out
//   level 4  qh
//   level 5  p - qh*q in two rows
//   level 6  acc
// The operands are multiplied on their way into level 1: the neighbour's register is the input register.
//
// Quotient. x = p >> (W-EXTRA), and the columns of x*mu below LO are not formed. With q > 2^(W-4), F = W+1+EXTRA:
//   p/q - x*mu/2^F  <  (bits of p below x) 2^(4-EXTRA) + (fraction of mu) 1/2,  both >= 0;
//   columns left out: at most ceil(LO/2) rows * 2^LO / 2^F.
// Together 1/8 + 1/2 + 17/64 = 57/64 for W = 32, so qh = floor(...) is p/q less something in [0, 2): r2 = p - qh*q
// is in [0, 2q), as in modmul_pe; r2 itself may differ from modmul_pe's, acc may not. Where the three do not stay
// below 1 the module does not elaborate: wrong results are too rare there for random operands to meet.
//
// Constants are picked from the banks, and their Booth digits found, one level ahead of use.
module modmul_pe_cs #(
    parameter W     = 32,  // word bits, 6..32
    parameter CELLS = 1,   // 1: trees of full_adder cells; 0: of equations (csa)
    parameter TREE1 = 3,   // rows in level 1, 2..4: above 2, part of the tree moves to level 2
    parameter TREE3 = 3,   // rows in level 3, likewise
    parameter ADDER = 2    // prefix_adder KIND of levels 2 and 4
) (
    input  wire         clk,
    input  wire         rst,
    input  wire [W-1:0] a_in,
    input  wire [W-1:0] b_in,
    input  wire [W-1:0] c_in,
    input  wire         valid_in,
    input  wire         first_in,
    input  wire         last_in,
    input  wire         bank_in,
    input  wire [W-1:0] q0,
    input  wire [W-1:0] q1,
    input  wire [W+4:0] mu0,
    input  wire [W+4:0] mu1,
    output reg  [W-1:0] a_out,
    output reg  [W-1:0] b_out,
    output reg          valid_out,
    output reg          first_out,
    output reg          last_out,
    output reg          bank_out,
    output reg  [W-1:0] acc,
    output reg          done
);
    localparam D1 = W / 2 + 1;        // Booth digits of b and of q
    localparam D3 = (W + 5) / 2 + 1;  // of mu
    localparam EXTRA = 7;
    localparam X  = W + EXTRA;        // bits of p that meet mu
    localparam LO = W + 2;            // first column of x*mu that is formed
    localparam F  = W + 1 + EXTRA;    // first column of qh
    localparam R  = W + 2;            // bits of qh and of the remainder
    localparam HI = F + R;            // one past the last
    localparam Q  = HI - LO;          // W+8: the low 6 columns only carry into qh

    // The bound above in units of 1/4096, columns rounded up.
    localparam LOSS = (65536 >> EXTRA) + 2048 + ((((LO + 1) / 2) * 4096) >> (F - LO)) + 1;
    generate
        if (LOSS > 4096) begin : g_inexact
            modmul_pe_cs_quotient_estimate loses_too_much ();
        end
    endgenerate

    // Control: index = level. Only valid needs a reset; first and last are read together with it.
    reg [5:2] valid, first, last;
    reg [4:2] bank;
    always @(posedge clk) begin
        bank_out <= bank_in;
        if (rst) begin
            valid_out <= 1'b0;
            first_out <= 1'b0;
            last_out  <= 1'b0;
        end else begin
            valid_out <= valid_in;
            first_out <= first_in;
            last_out  <= last_in;
        end
        valid <= rst ? 4'b0 : {valid[4:2], valid_out};
        first <= {first[4:2], first_out};
        last  <= {last[4:2], last_out};
        bank  <= {bank[3:2], bank_out};
        done  <= !rst && valid[5] && last[5];
    end

    // Level 1: product, C as one more row.
    wire [D1-1:0]       b_one, b_two, b_neg;
    wire [D1*2*W-1:0]   product_rows;
    wire [TREE1*2*W-1:0] product_sum;
    booth_recode #(.B(W)) recode_b (.y(b_in), .one(b_one), .two(b_two), .neg(b_neg));
    booth_rows #(.N(W), .D(D1), .TO(2*W)) product (
        .x(a_in), .one(b_one), .two(b_two), .neg(b_neg), .rows(product_rows));
    csatree #(.N(D1+1), .W(2*W), .OUT(TREE1), .CELLS(CELLS)) product_tree (
        .in_rows({{W{1'b0}}, c_in & {W{first_in}}, product_rows}), .out_rows(product_sum));
    reg [TREE1*2*W-1:0] sum1;
    always @(posedge clk) begin
        a_out <= a_in;
        b_out <= b_in;
        sum1  <= product_sum;
    end

    // Level 2: p; digits of mu of the step's bank.
    wire [4*W-1:0] rows2;
    wire [2*W-1:0] p_next;
    csatree #(.N(TREE1), .W(2*W), .CELLS(CELLS)) rest_of_product (.in_rows(sum1), .out_rows(rows2));
    prefix_adder #(.W(2*W), .KIND(ADDER)) resolve_p (
        .x(rows2[2*W-1:0]), .y(rows2[4*W-1:2*W]), .carry_in(1'b0), .sum(p_next));
    wire [D3-1:0] mu_one_next, mu_two_next, mu_neg_next;
    booth_recode #(.B(W+5)) recode_mu (
        .y(bank_out ? mu1 : mu0), .one(mu_one_next), .two(mu_two_next), .neg(mu_neg_next));
    reg [2*W-1:0] p2;
    reg [D3-1:0]  mu_one, mu_two, mu_neg;
    always @(posedge clk) begin
        p2 <= p_next;
        {mu_one, mu_two, mu_neg} <= {mu_one_next, mu_two_next, mu_neg_next};
    end

    // Level 3: quotient estimate, carry-save.
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: x is the top of p; the zeros stand below bit 0 for W < EXTRA.
    wire [2*W+EXTRA-1:0] p_padded = {p2, {EXTRA{1'b0}}};
    /* verilator lint_on UNUSEDSIGNAL */
    wire [D3*Q-1:0]     estimate_rows;
    wire [TREE3*Q-1:0]  estimate_sum;
    booth_rows #(.N(X), .D(D3), .FROM(LO), .TO(HI)) estimate (
        .x(p_padded[2*W+EXTRA-1:W]), .one(mu_one), .two(mu_two), .neg(mu_neg), .rows(estimate_rows));
    csatree #(.N(D3), .W(Q), .OUT(TREE3), .CELLS(CELLS)) estimate_tree (
        .in_rows(estimate_rows), .out_rows(estimate_sum));
    reg [TREE3*Q-1:0] sum3;
    reg [R-1:0]       p3;
    always @(posedge clk) begin
        sum3 <= estimate_sum;
        p3   <= p2[R-1:0];
    end

    // Level 4: qh; digits of q of the step's bank.
    wire [2*Q-1:0] rows4;
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: the low columns of the estimate only carry.
    wire [Q-1:0]   qh_next;
    /* verilator lint_on UNUSEDSIGNAL */
    csatree #(.N(TREE3), .W(Q), .CELLS(CELLS)) rest_of_estimate (.in_rows(sum3), .out_rows(rows4));
    prefix_adder #(.W(Q), .KIND(ADDER)) resolve_qh (
        .x(rows4[Q-1:0]), .y(rows4[2*Q-1:Q]), .carry_in(1'b0), .sum(qh_next));
    wire [D1-1:0] q_one_next, q_two_next, q_neg_next;
    booth_recode #(.B(W)) recode_q (
        .y(bank[3] ? q1 : q0), .one(q_one_next), .two(q_two_next), .neg(q_neg_next));
    reg [R-1:0]  qh4, p4;
    reg [D1-1:0] q_one, q_two, q_neg;
    always @(posedge clk) begin
        qh4 <= qh_next[Q-1:Q-R];
        p4  <= p3;
        {q_one, q_two, q_neg} <= {q_one_next, q_two_next, q_neg_next};
    end

    // Level 5: remainder, carry-save mod 2^(W+2).
    wire [D1*R-1:0] multiple_rows;
    wire [2*R-1:0]  remainder;
    booth_rows #(.N(R), .D(D1), .TO(R), .NEGATE(1)) multiple (
        .x(qh4), .one(q_one), .two(q_two), .neg(q_neg), .rows(multiple_rows));
    csatree #(.N(D1+1), .W(R), .CELLS(CELLS)) remainder_tree (
        .in_rows({p4, multiple_rows}), .out_rows(remainder));
    reg [R-1:0] r5s, r5c;
    reg [W-1:0] q5;
    always @(posedge clk) begin
        {r5c, r5s} <= remainder;
        q5         <= bank[4] ? q1 : q0;
    end

    // Level 6.
    wire [W-1:0] acc_next;
    modular_accumulate #(.W(W)) accumulate (
        .acc(acc), .r_s(r5s), .r_c(r5c), .q(q5), .first(first[5]), .valid(valid[5]), .next(acc_next));
    always @(posedge clk) acc <= acc_next;
endmodule
