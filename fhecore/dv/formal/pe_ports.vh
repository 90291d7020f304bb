// Parameters and ports of the checks of a processing element: its inputs, all free.
#(
    parameter W = 6,
    parameter Q0 = 0,  // moduli of the banks, 0: any
    parameter Q1 = 0
) (
    input clk, rst, valid_in, first_in, last_in, bank_in,
    input [W-1:0] a_in, b_in, c_in
);
