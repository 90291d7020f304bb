// Carry-save adder: x + y + z = s + c mod 2^W. c is already shifted left; its bit 0 is free (0).
// CELLS = 1 places one full_adder a bit (small, for the library's adder cell); CELLS = 0 leaves the two
// equations to logic synthesis (faster, larger). Values are the same.
module csa #(
    parameter W     = 32,
    parameter CELLS = 0,
    parameter FLIP  = 0   // polarity of the cells, see full_adder
) (
    input  wire [W-1:0] x,
    input  wire [W-1:0] y,
    input  wire [W-1:0] z,
    output wire [W-1:0] s,
    output wire [W-1:0] c
);
    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: arithmetic is mod 2^W, the last carry is dropped by intent.
    wire [W-1:0] carry;
    /* verilator lint_on UNUSEDSIGNAL */
    assign c = {carry[W-2:0], 1'b0};

    genvar i;
    generate
        if (CELLS != 0) begin : g_cells
            for (i = 0; i < W; i = i + 1) begin : g_bit
                full_adder #(.FLIP(FLIP)) fa (.x(x[i]), .y(y[i]), .z(z[i]), .s(s[i]), .c(carry[i]));
            end
        end else begin : g_logic
            assign s     = x ^ y ^ z;
            assign carry = (x & y) | (x & z) | (y & z);
        end
    endgenerate
endmodule
