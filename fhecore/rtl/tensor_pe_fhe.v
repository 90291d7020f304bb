// Element of a tensor core with the modular one beside it: the low words of the operands go to both, a step is
// the modular element's with modular_in. A modular tile's steps may be any number of edges apart, as its sum has a
// register of its own. Both end 6 edges after the last step, so that results do not meet on the bus.
module tensor_pe_fhe #(
    parameter SINGLE_M = 23,
    parameter CELLS    = 1  // of csatree: 0 is the same function, far faster to simulate
) (
    input  wire        clk,
    input  wire        rst,  // synchronous; clears control only
    input  wire [63:0] a_in,
    input  wire [63:0] b_in,
    input  wire [63:0] c_in,
    input  wire        valid_in,
    input  wire        first_in,
    input  wire        last_in,
    input  wire [1:0]  format_in,
    input  wire        modular_in,
    input  wire        bank_in,
    input  wire [31:0] q0,
    input  wire [31:0] q1,
    input  wire [36:0] mu0,
    input  wire [36:0] mu1,
    output wire [63:0] a_out,
    output wire [63:0] b_out,
    output wire        valid_out,
    output wire        first_out,
    output wire        last_out,
    output wire [1:0]  format_out,
    output reg         modular_out,
    output wire        bank_out,
    output wire [63:0] sum,
    output wire        done
);
    wire [63:0] tensor_sum;
    wire [31:0] modular_sum;
    wire        tensor_valid, modular_valid, tensor_done, modular_done;

    always @(posedge clk) modular_out <= modular_in & ~rst;
    assign valid_out = tensor_valid | modular_valid;
    assign sum  = modular_done ? {32'd0, modular_sum} : tensor_sum;
    assign done = tensor_done | modular_done;

    tensor_pe #(.SINGLE_M(SINGLE_M), .CELLS(CELLS)) tensor (
        .clk(clk), .rst(rst), .a_in(a_in), .b_in(b_in), .c_in(c_in),
        .valid_in(valid_in & ~modular_in), .first_in(first_in), .last_in(last_in), .format_in(format_in),
        .a_out(a_out), .b_out(b_out), .valid_out(tensor_valid), .first_out(first_out), .last_out(last_out),
        .format_out(format_out), .sum(tensor_sum), .done(tensor_done));

    /* verilator lint_off PINCONNECTEMPTY */
    // Reason: the same registers as the tensor element's; synthesis keeps one set.
    modmul_pe_cs #(.CELLS(CELLS)) modular (
        .clk(clk), .rst(rst), .a_in(a_in[31:0]), .b_in(b_in[31:0]), .c_in(c_in[31:0]),
        .valid_in(valid_in & modular_in), .first_in(first_in), .last_in(last_in), .bank_in(bank_in),
        .q0(q0), .q1(q1), .mu0(mu0), .mu1(mu1),
        .a_out(), .b_out(), .valid_out(modular_valid), .first_out(), .last_out(), .bank_out(bank_out),
        .acc(modular_sum), .done(modular_done));
    /* verilator lint_on PINCONNECTEMPTY */
endmodule
