// Modular multiply-accumulate element with one multiplier for its three products: a step every three edges, and a
// tile of 16 steps every 48. Ports, values and cycles of a step are those of modmul_pe.
//
//   cycle      0      1      2       3      4        5
//   multiplier a*b+c  .      x*mu    .      p-qh*q   .
//   adder      .      p      .       qh     .        acc
//
// A step that comes three edges later finds the multiplier free where this one does not use it, so does one that
// comes 3 n later; others do not: steps stand on one grid of three edges. One edge apart they would meet at the
// third, two and four apart at the second.
//
// The quotient is modmul_pe's: x = p >> (W-5), no column left out. -qh*q is made by turning the signs of q's Booth
// digits. Its top digits are zeros, because mu has more of them, so that every turned one has a row for its +1.
// Constants are picked, and their digits found, one cycle ahead of use.
module modmul_pe_seq #(
    parameter W     = 32,  // word bits, 6..32
    parameter CELLS = 1,   // 1: trees of full_adder cells; 0: of equations (csa)
    parameter ADDER = 2    // prefix_adder KIND
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
    localparam X  = W + 5;            // bits of p that meet mu
    localparam B  = W + 5;            // of mu, the longest multiplier
    localparam D  = B / 2 + 1;
    localparam F  = W + 6;            // first column of qh
    localparam R  = W + 2;            // bits of qh and of the remainder
    localparam TO = F + R;

    // Control: index = cycle of the step. Only valid needs a reset; first and last are read together with it.
    reg [5:2] valid, first, last;
    reg [4:2] bank;
    always @(posedge clk) begin
        a_out    <= a_in;
        b_out    <= b_in;
        bank_out <= bank_in;
        {valid_out, first_out, last_out} <= rst ? 3'b000 : {valid_in, first_in, last_in};
        valid <= rst ? 4'b0 : {valid[4:2], valid_out};
        first <= {first[4:2], first_out};
        last  <= {last[4:2], last_out};
        bank  <= {bank[3:2], bank_out};
        done  <= !rst && valid[5] && last[5];
    end

    // Which of the three the multiplier takes, and Booth digits of the constants, one cycle ahead of use.
    reg          fresh, estimates, subtracts;
    wire [D-1:0] mu_one, mu_two, mu_neg, q_one, q_two, q_neg;
    reg  [D-1:0] held_one, held_two, held_neg;
    booth_recode #(.B(B)) recode_mu (.y(bank_out ? mu1 : mu0), .one(mu_one), .two(mu_two), .neg(mu_neg));
    booth_recode #(.B(W), .D(D)) recode_q (.y(bank[3] ? q1 : q0), .one(q_one), .two(q_two), .neg(q_neg));
    always @(posedge clk) begin
        fresh     <= rst || !(valid_out || valid[3]);
        estimates <= !rst && valid_out;
        subtracts <= !rst && valid[3];
        {held_one, held_two, held_neg} <= valid[3] ? {q_one, q_two, ~q_neg} : {mu_one, mu_two, mu_neg};
    end

    // The multiplier: what it is given, and its sum in three rows.
    reg  [TO-1:0]   resolved;  // p in cycle 2, qh from column F on in cycle 4
    reg  [R-1:0]    p4;
    wire [X-1:0]    x = ({X{fresh}} & {{(X-W){1'b0}}, a_in}) | ({X{estimates}} & resolved[2*W-1:W-5])
                      | ({X{subtracts}} & {{(X-R){1'b0}}, resolved[TO-1:F]});
    wire [R-1:0]    z = ({R{fresh & first_in}} & {{(R-W){1'b0}}, c_in}) | ({R{subtracts}} & p4);
    wire [D-1:0]    b_one, b_two, b_neg;
    wire [D*TO-1:0] rows;
    wire [3*TO-1:0] sum_next;
    booth_recode #(.B(W), .D(D)) recode_b (.y(b_in), .one(b_one), .two(b_two), .neg(b_neg));
    booth_rows #(.N(X), .D(D), .TO(TO)) product (
        .x(x), .one(fresh ? b_one : held_one), .two(fresh ? b_two : held_two), .neg(fresh ? b_neg : held_neg),
        .rows(rows));
    csatree #(.N(D+1), .W(TO), .OUT(3), .CELLS(CELLS)) tree (
        .in_rows({{(TO-R){1'b0}}, z, rows}), .out_rows(sum_next));
    reg [3*TO-1:0] sum;

    // The adder.
    wire [2*TO-1:0] two_rows;
    wire [TO-1:0]   resolved_next;
    csatree #(.N(3), .W(TO), .CELLS(CELLS)) rest (.in_rows(sum), .out_rows(two_rows));
    prefix_adder #(.W(TO), .KIND(ADDER)) resolve (
        .x(two_rows[TO-1:0]), .y(two_rows[2*TO-1:TO]), .carry_in(1'b0), .sum(resolved_next));
    reg [W-1:0] q5;
    always @(posedge clk) begin
        sum      <= sum_next;
        resolved <= resolved_next;
        q5       <= bank[4] ? q1 : q0;
        if (estimates) p4 <= resolved[R-1:0];
    end

    wire [W-1:0] acc_next;
    modular_accumulate #(.W(W)) accumulate (
        .acc(acc), .r_s(two_rows[R-1:0]), .r_c(two_rows[TO+R-1:TO]), .q(q5), .first(first[5]), .valid(valid[5]),
        .next(acc_next));
    always @(posedge clk) acc <= acc_next;
endmodule
