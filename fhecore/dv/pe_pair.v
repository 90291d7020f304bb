// Both forms of the element on the same inputs, for pe_pair.cpp. NETLIST: the second is a netlist.
module pe_pair #(
    parameter W     = 32,
    parameter CELLS = 1
) (
    input  wire         clk, rst, valid_in, first_in, last_in, bank_in,
    input  wire [W-1:0] a_in, b_in, c_in, q0, q1,
    input  wire [W+4:0] mu0, mu1,
    output wire [W-1:0] acc, cs_acc, a_out, cs_a_out, b_out, cs_b_out,
    output wire [4:0]   control, cs_control  // done, valid, first, last, bank
);
    modmul_pe #(.W(W)) plain (
        .clk(clk), .rst(rst), .a_in(a_in), .b_in(b_in), .c_in(c_in), .valid_in(valid_in), .first_in(first_in),
        .last_in(last_in), .bank_in(bank_in), .q0(q0), .q1(q1), .mu0(mu0), .mu1(mu1), .a_out(a_out),
        .b_out(b_out), .valid_out(control[3]), .first_out(control[2]), .last_out(control[1]),
        .bank_out(control[0]), .acc(acc), .done(control[4]));
`ifdef NETLIST  // a netlist has no parameters
    modmul_pe_cs carry_save (
`else
    modmul_pe_cs #(.W(W), .CELLS(CELLS)) carry_save (
`endif
        .clk(clk), .rst(rst), .a_in(a_in), .b_in(b_in), .c_in(c_in), .valid_in(valid_in), .first_in(first_in),
        .last_in(last_in), .bank_in(bank_in), .q0(q0), .q1(q1), .mu0(mu0), .mu1(mu1), .a_out(cs_a_out),
        .b_out(cs_b_out), .valid_out(cs_control[3]), .first_out(cs_control[2]), .last_out(cs_control[1]),
        .bank_out(cs_control[0]), .acc(cs_acc), .done(cs_control[4]));
endmodule
