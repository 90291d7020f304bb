// Element of a tensor core, as an assumption: the inside of a tensor core is not public. A place of an output
// stationary array like fhecore_array, with a unit for each format of numbers:
//
//   format 0: a, b signed bytes, sum of 32 bits      2: binary32 (SINGLE_M fraction bits; 10 is TF32)
//          1: a, b binary16, sum binary32            3: binary64
//
// Units have 6 levels and no place for sums besides: six sums are in turn in the levels, and each is the addend of
// its own next step. So step n of a tile is 6 edges, or a multiple of 6, after step n - 1, and six tiles in turn
// keep the element busy. In between a sum goes round unchanged.
//   valid: a step;  first: it starts a tile, with c_in and the format, which counts there only;
//   last: its sum, 6 edges later, is on sum for one cycle with done.
// Operands stand in the low bits of 64; they and control are the neighbours' one edge later.
module tensor_pe #(
    parameter SINGLE_M = 23,
    parameter CELLS    = 1  // of csatree: 0 is the same function, far faster to simulate
) (
    input  wire        clk,
    input  wire        rst,        // synchronous; clears control only
    input  wire [63:0] a_in,
    input  wire [63:0] b_in,
    input  wire [63:0] c_in,
    input  wire        valid_in,
    input  wire        first_in,
    input  wire        last_in,
    input  wire [1:0]  format_in,
    output reg  [63:0] a_out,
    output reg  [63:0] b_out,
    output reg         valid_out,
    output reg         first_out,
    output reg         last_out,
    output reg  [1:0]  format_out,
    output wire [63:0] sum,
    output reg         done
);
    localparam SINGLE = 9 + SINGLE_M;

    always @(posedge clk) begin
        a_out      <= a_in;
        b_out      <= b_in;
        format_out <= format_in;
        {valid_out, first_out, last_out} <= rst ? 3'b000 : {valid_in, first_in, last_in};
    end

    // Format of the sum at each level, and which steps end a tile.
    reg [1:0] format1, format2, format3, format4, format5, format6;
    reg [5:2] ends;
    wire [1:0] format = valid_in & first_in ? format_in : format6;
    always @(posedge clk) begin
        {format1, format2, format3, format4, format5, format6}
            <= {format, format1, format2, format3, format4, format5};
        {done, ends} <= rst ? 5'b00000 : {ends[5:2], valid_out & last_out};
    end

    wire [31:0] sum_int8, sum_half, sum_single;
    wire [63:0] sum_double;
    wire [63:0] narrow = {32'd0, format6 == 2'd0 ? sum_int8 : format6 == 2'd1 ? sum_half : sum_single};
    assign sum = format6 == 2'd3 ? sum_double : narrow;
    wire [63:0] addend = valid_in & first_in ? c_in : sum;

    tensor_int8 int8 (
        .clk(clk), .a(a_in[7:0]), .b(b_in[7:0]), .c(addend[31:0]),
        .hold(~(valid_in & format == 2'd0)), .d(sum_int8));
    tensor_fma #(.E(5), .M(10), .EA(8), .MA(23), .CELLS(CELLS)) half (
        .clk(clk), .a(a_in[15:0]), .b(b_in[15:0]), .c(addend[31:0]),
        .hold(~(valid_in & format == 2'd1)), .d(sum_half));
    tensor_fma #(.E(8), .M(SINGLE_M), .EA(8), .MA(23), .CELLS(CELLS)) single (
        .clk(clk), .a(a_in[SINGLE-1:0]), .b(b_in[SINGLE-1:0]), .c(addend[31:0]),
        .hold(~(valid_in & format == 2'd2)), .d(sum_single));
    tensor_fma #(.E(11), .M(52), .EA(11), .MA(52), .CELLS(CELLS)) double (
        .clk(clk), .a(a_in), .b(b_in), .c(addend),
        .hold(~(valid_in & format == 2'd3)), .d(sum_double));
endmodule
