// Multiply-accumulate element without a reduction: acc <- acc + a*b + c, in two rows whose sum mod 2^A is the sum
// of the tile. Its column reduces it (lazy_reduce), once a tile and not once a step. A = 2W + G bits hold
// 2^G steps with C. Ports, neighbours and control are those of modmul_pe; a step sampled at edge n is in acc after
// edge n + 1.
module lazy_pe #(
    parameter W     = 32,
    parameter G     = 4,
    parameter CELLS = 1,  // of csatree
    parameter A     = 2 * W + G
) (
    input  wire           clk,
    input  wire           rst,  // synchronous; clears control only
    input  wire [W-1:0]   a_in,
    input  wire [W-1:0]   b_in,
    input  wire [W-1:0]   c_in,
    input  wire           valid_in,
    input  wire           first_in,
    input  wire           last_in,
    input  wire           bank_in,
    output reg  [W-1:0]   a_out,
    output reg  [W-1:0]   b_out,
    output reg            valid_out,
    output reg            first_out,
    output reg            last_out,
    output reg            bank_out,
    output reg  [2*A-1:0] acc,
    output reg            done,  // acc holds a finished element, for this one cycle
    output reg            bank   // of it
);
    localparam D = W / 2 + G / 2 + 1;  // Booth digits: with zeros on top, as rows of A columns need them

    always @(posedge clk) begin
        a_out    <= a_in;
        b_out    <= b_in;
        bank_out <= bank_in;
        {valid_out, first_out, last_out} <= rst ? 3'b000 : {valid_in, first_in, last_in};
        done <= ~rst & valid_out & last_out;
        bank <= bank_out;
    end

    // Level 1: the product and c in three rows.
    wire [D-1:0]   one, two, neg;
    wire [D*A-1:0] product_rows;
    wire [3*A-1:0] product_sum;
    booth_recode #(.B(W), .D(D)) recode (.y(b_in), .one(one), .two(two), .neg(neg));
    booth_rows #(.N(W), .D(D), .TO(A)) product (.x(a_in), .one(one), .two(two), .neg(neg), .rows(product_rows));
    csatree #(.N(D+1), .W(A), .OUT(3), .CELLS(CELLS)) tree (
        .in_rows({{(A-W){1'b0}}, c_in & {W{first_in}}, product_rows}), .out_rows(product_sum));
    reg [3*A-1:0] sum1;
    always @(posedge clk) sum1 <= product_sum;

    // Level 2: no carry is resolved in the loop.
    wire [2*A-1:0] next;
    csatree #(.N(5), .W(A), .CELLS(CELLS)) add (.in_rows({sum1, acc & {(2*A){~first_out}}}), .out_rows(next));
    always @(posedge clk) if (valid_out) acc <= next;
endmodule
