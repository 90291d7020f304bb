// Partial products of x * y (NEGATE = 0) or -x * y (NEGATE = 1), y given as D Booth digits: D rows whose
// sum is the product in columns FROM .. TO-1, mod 2^TO. Columns below FROM are left out of every row: for
// FROM > 0 the sum is low by at most (rows that start below FROM) * 2^FROM, never high.
//
// A negative row is the complement; its +1 stands in the free low column of the next row. The sign of row i,
// -s * 2^(N+1+2i), is written ~s * 2^(N+1+2i) with all constants summed to ones: that needs
// N + 1 + 2*(D-1) >= TO. The top digit is not negative, so its row needs no +1; with NEGATE it is formed
// from -x mod 8, which needs TO <= 2*(D-1) + 3.
module booth_rows #(
    parameter N      = 32,
    parameter D      = 17,
    parameter FROM   = 0,
    parameter TO     = 64,
    parameter NEGATE = 0
) (
    input  wire [N-1:0]           x,
    input  wire [D-1:0]           one,
    input  wire [D-1:0]           two,
    input  wire [D-1:0]           neg,
    output wire [D*(TO-FROM)-1:0] rows
);
    localparam FULL = N + 2 * D + 4;  // a row's highest column is below this
    generate
        if (NEGATE != 0 ? TO > 2 * D + 1 : TO > N + 2 * D - 1) begin : g_unsupported
            booth_rows_to_is_too_large to_out_of_range ();
        end
    endgenerate

    /* verilator lint_off UNUSEDSIGNAL */
    // Reason: the top digit's sign is known.
    wire [D-1:0] sign = (NEGATE != 0) ? ~neg : neg;
    /* verilator lint_on UNUSEDSIGNAL */
    genvar i;
    generate
        for (i = 0; i < D; i = i + 1) begin : g_row
            /* verilator lint_off UNUSEDSIGNAL */
            // Reason: columns outside FROM..TO-1 are dropped by intent.
            wire [FULL-1:0] full;
            /* verilator lint_on UNUSEDSIGNAL */
            if (i == D - 1 && NEGATE != 0) begin : g_top_negated
                wire [2:0] minus = ~x[2:0] + 3'd1;
                wire [2:0] term  = ({3{one[i]}} & minus) | ({3{two[i]}} & {minus[1:0], 1'b0});
                wire [FULL-1:0] placed = {{(FULL-3){1'b0}}, term} << (2 * i);
                assign full = placed | ({{(FULL-1){1'b0}}, sign[i-1]} << (2 * i - 2));
            end else begin : g_digit
                wire [N:0] magnitude = ({(N+1){one[i]}} & {1'b0, x}) | ({(N+1){two[i]}} & {x, 1'b0});
                wire [N:0] term      = (i == D - 1) ? magnitude : magnitude ^ {(N+1){sign[i]}};
                wire [2:0] top       = (i == D - 1) ? 3'b000
                                     : (i == 0)     ? {~sign[i], sign[i], sign[i]}
                                                    : {1'b0, 1'b1, ~sign[i]};
                wire [FULL-1:0] placed = {{(FULL-N-4){1'b0}}, top, term} << (2 * i);
                if (i > 0) begin : g_plus_one
                    assign full = placed | ({{(FULL-1){1'b0}}, sign[i-1]} << (2 * i - 2));
                end else begin : g_first
                    assign full = placed;
                end
            end
            assign rows[i*(TO-FROM) +: TO-FROM] = full[TO-1:FROM];
        end
    endgenerate
endmodule
